/* Trimming (Ultra Ethernet specification 1.0, 4.1): a packet that its queue cannot take is cut to its
 * headers and goes on in another class.
 *
 * The specification leaves the lengths in the headers as they were. Open vSwitch's userspace datapath
 * does not look into a packet that is shorter than its IP length says, and finds no way for it. So
 * the lengths are those of what is left, and the IP length of what was cut stands in the
 * identification, which no one reads in a datagram that must not be fragmented (RFC 6864, 4.1) and
 * which our NICs leave 0.
 */
static __always_inline int is_cut(struct roce_frame *frame)
{
	return frame && frame->ip.frag_off == bpf_htons(IP_DF) &&
	       bpf_ntohs(frame->ip.id) > bpf_ntohs(frame->ip.tot_len);
}

/* The IP header's checksum anew (RFC 1071). */
static __always_inline void renew_checksum(struct roce_frame *frame)
{
	__be32 *words = (void *)frame + sizeof(frame->eth);
	__u32 sum;

	frame->ip.check = 0;
	sum = bpf_csum_diff(NULL, 0, words, sizeof(frame->ip), 0);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	frame->ip.check = ~sum;
}

/* Whether a queue of this length would be longer than its class may have it before packets are cut. */
static __always_inline int exceeds(struct class_config *cls, __u64 length)
{
	return cls->trim_above && length > cls->trim_above;
}

/* Cuts a frame to its headers; 0 when it must not be, or has been, or there is nothing to cut. */
static __always_inline int trim(struct __sk_buff *skb, struct class_config *cls)
{
	__u32 size = cls->trim_bytes;
	struct roce_frame *frame;

	if (size < sizeof(*frame) || skb->len <= size)
		return 0;
	frame = roce_of(skb);
	if (!frame || frame->ip.frag_off != bpf_htons(IP_DF) || is_cut(frame) ||
	    bpf_skb_change_tail(skb, size, 0))
		return 0;
	frame = roce_of(skb);
	if (!frame)
		return 0;
	frame->ip.id = frame->ip.tot_len;
	frame->ip.tot_len = bpf_htons(size - sizeof(frame->eth));
	frame->ip.tos = cls->trim_dscp << ECN_BITS | (frame->ip.tos & ECN_MASK);
	frame->udp.len = bpf_htons(size - sizeof(frame->eth) - sizeof(frame->ip));
	frame->udp.check = 0;
	renew_checksum(frame);
	return 1;
}
