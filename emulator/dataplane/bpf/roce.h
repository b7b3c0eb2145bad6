/* RoCEv2 frames: Ethernet, IPv4 without options, UDP, base transport header. */
#define ROCE_PORT 4791
#define IP_DF 0x4000
#define ROCE_ACKNOWLEDGE 17
#define SACK_BYTES 20
#define SACK_FRAME 82

struct bth {
	__u8 opcode;
	__u8 flags;
	__be16 pkey;
	__be32 dest_qp; /* FECN, BECN and 6 reserved bits above it */
	__be32 psn;     /* AckReq and 7 reserved bits above it */
};

struct roce_frame {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	struct bth bth;
	__be32 aeth; /* ACK only; payload otherwise; every frame has at least an ICRC here */
} __attribute__((packed));

static __always_inline struct roce_frame *roce_of(struct __sk_buff *skb)
{
	struct roce_frame *frame;

	if (bpf_skb_pull_data(skb, sizeof(*frame)))
		return NULL;
	frame = (void *)(long)skb->data;
	if ((void *)(frame + 1) > (void *)(long)skb->data_end)
		return NULL;
	if (frame->eth.h_proto != bpf_htons(ETH_P_IP) || frame->ip.ihl != 5 ||
	    frame->ip.protocol != IPPROTO_UDP || frame->udp.dest != bpf_htons(ROCE_PORT))
		return NULL;
	return frame;
}
