/* The data plane's fast path: classifier programs that share their maps.
 *
 *   mmu_egress   clsact egress of every port: classify, admit, cut or drop, mark CE, count in
 *   wire_out     clsact ingress of the peer: the frame has left the queue, count out
 *   nic_receive  the same on a host, and RoCEv2 frames go to the NIC's ring instead of the stack
 *   wire_delay   instead of wire_out, where links delay frames: clsact egress of the ifb device
 *                that holds them; says when each frame is there, and fq lets it go then
 *
 * A filter's classid tells a program its port (1..MAX_PORTS), so one load serves all ports.
 * wire_delay serves many ports with one filter and goes by the interface that a frame came from.
 * Both ends of a veth pair are in one kernel: in - out is the exact occupancy of a queue.
 * Sizes are bytes of the Ethernet frame without FCS; rates count 24 bytes more on the wire.
 * The structures are mirrored in emulator/dataplane/layout.py; a test compares them.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAX_PORTS 4096
#define MAX_SWITCHES 512
#define CLASSES 8
#define GAP_BUCKETS 16
#define WIRE_OVERHEAD 24
#define HTB_MAJOR 0x10000
#define HTB_FIRST_LEAF 0x10
#define FLAG_SWITCH 1
#define FIRST_INTERFACE 1000
#define NUMBER_WORDS 8
#define MIN_FRAME 60
#define SETTLED 4
#define ALPHA_SHIFT 8
/* TC_ACT_SHOT would reach the sender as an error, and Open vSwitch then gives up the whole batch. */
#define DROP_SILENTLY TC_ACT_STOLEN
#define ECN_BITS 2
#define ECN_MASK 3
#define ECN_CE 3

struct class_config {
	__u32 kmin;  /* bytes; marking starts above */
	__u32 kmax;  /* bytes; every packet is marked above; 0 = marking off */
	__u32 pmax;  /* probability at kmax, in 1/65536 */
	__u32 alpha; /* dynamic threshold, in 1/256 of the free shared buffer */
	__u32 trim_bytes; /* what the queue cannot take is cut to so many bytes; 0 = dropped */
	__u32 trim_above; /* bytes, longest queue before packets are cut; 0 = as long as there is room */
	__u32 trim_dscp;  /* code point of what was cut */
	__u32 reserved;
};

struct port_config {
	__u32 flags;
	__u32 switch_id;
	__u32 peer;
	__u32 seed;              /* of the marking lottery */
	__u64 ns_per_kib;        /* time of 1024 bytes on the wire, ns */
	struct class_config classes[CLASSES];
	/* What arrives here is delayed; all 0 where the receiving NIC holds packets instead. */
	__u32 link_ns;           /* propagation to here, and then the latency of this switch */
	__u32 header_ns;         /* of the header, all that a cut-through switch waits for */
	__u32 ps_per_byte;       /* of the link that ends here */
	__u32 leaf;              /* number of this leaf; 0 on spines and hosts */
	__u32 whole_hosts[NUMBER_WORDS];  /* bit n: frames to host n of this leaf must be in whole */
	__u32 whole_leaves[NUMBER_WORDS]; /* bit n: frames to hosts of another leaf n must */
};

struct class_state {
	__u64 in_packets, in_bytes;
	__u64 out_packets, out_bytes;
	__u64 drop_packets, drop_bytes;
	__u64 mark_packets;
	__u64 peak_bytes;
	__u64 trim_packets, trim_bytes; /* cut instead of entering this queue, and by how much */
	__u64 trim_drops;               /* packets among those dropped that had been cut */
};

struct port_state {
	struct class_state classes[CLASSES];
	__u64 last_out_ns, last_out_wire_bytes;
	__u64 run;               /* departures since the queue was last empty */
	__u64 busy_ns, busy_wire_bytes, busy_gaps;
	__u64 overruns;          /* frames that found the NIC's ring full */
	__u64 received_packets;  /* frames that the NIC took */
	__u64 trimmed_packets;   /* frames that came to the NIC cut to their headers */
	__u64 last_byte_ns;      /* when the last frame that came in here was in whole */
	__u64 late_gaps[GAP_BUCKETS]; /* by log2 of the lateness in us */
};

struct switch_state {
	__u64 buffer_bytes;
	__u64 in_bytes, out_bytes;
	__u64 peak_bytes;
	__u64 reserved_bytes; /* headroom of all ports and classes */
	__u64 headroom_bytes; /* part of it that frames take now */
};

struct nic_record {
	__u64 time_ns;
	__u32 psn;
	__u32 dest_qp;
	__u32 aeth;
	__u32 src_ip;
	__u16 port;
	__u16 length;
	__u16 udp_source;
	__u8 opcode;
	__u8 tos;
	__u8 ack_request;
	__u8 becn;
	__u8 trimmed; /* cut to its headers on the way */
	__u8 pad;
	__be32 sack_word; /* what a selective acknowledgement has behind its AETH */
	__be64 sack_received, sack_marked;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct port_config);
} port_configs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct port_state);
} port_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_SWITCHES);
	__type(key, __u32);
	__type(value, struct switch_state);
} switch_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 * 1024 * 1024);
} nic_ring SEC(".maps");

#include "pause.h"
#include "receive.h"
#include "roce.h"
#include "trim.h"

static __always_inline struct iphdr *ipv4_of(struct __sk_buff *skb)
{
	struct ethhdr *eth;
	struct iphdr *ip;

	if (bpf_skb_pull_data(skb, sizeof(*eth) + sizeof(*ip)))
		return NULL;
	eth = (void *)(long)skb->data;
	ip = (void *)(eth + 1);
	if ((void *)(ip + 1) > (void *)(long)skb->data_end)
		return NULL;
	return eth->h_proto == bpf_htons(ETH_P_IP) ? ip : NULL;
}

/* A lottery that depends on the seed and the packet's number only, so that a run repeats. */
static __always_inline __u32 lottery(__u32 seed, __u64 number)
{
	__u32 x = seed ^ ((__u32)number * 0x9e3779b1);

	x ^= x >> 16;
	x *= 0x7feb352d;
	x ^= x >> 15;
	x *= 0x846ca68b;
	x ^= x >> 16;
	return x & 0xffff;
}

static __always_inline int wins_mark(struct port_config *port, struct class_config *cls,
				     __u64 queue, __u64 number)
{
	__u64 chance;

	if (!cls->kmax || queue <= cls->kmin)
		return 0;
	if (queue > cls->kmax)
		return 1;
	chance = (queue - cls->kmin) * cls->pmax / (cls->kmax - cls->kmin);
	return lottery(port->seed, number) < chance;
}

/* ECT(0) or ECT(1): the sender reacts to marks, and no switch before has marked it. */
static __always_inline int is_markable(struct iphdr *ip)
{
	return (ip->tos & ECN_MASK) && (ip->tos & ECN_MASK) != ECN_CE;
}

/* A frame of a lossy class: its queue may grow to alpha times the free shared buffer. */
static __always_inline int take_shared(struct switch_state *sw, struct class_config *cls,
				       __u64 queue, __u64 length)
{
	__u64 room = free_shared(sw);

	if (length > room || queue >= ((room * cls->alpha) >> ALPHA_SHIFT))
		return DROPPED;
	__sync_fetch_and_add(&sw->in_bytes, length);
	return TAKEN;
}

/* The verdict of a switch's MMU on a frame of a class; says in the frame where it is counted. */
static __always_inline int admit(struct __sk_buff *skb, struct port_config *config, __u32 port,
				 __u32 tc, __u64 queue, __u32 *posted)
{
	struct switch_state *sw = bpf_map_lookup_elem(&switch_states, &config->switch_id);
	struct account account;
	__u32 ingress = 0;
	int tagged = config->flags & FLAG_TAGS, verdict;

	if (!sw)
		return DROPPED;
	if (tagged) {
		verdict = discards(skb, port, tc);
		if (verdict != TAKEN)
			return verdict;
		ingress = came_in_by(skb, config->switch_id);
		if (!open_account(&account, sw, config->switch_id, ingress, tc) ||
		    !account.config->headroom)
			ingress = 0;
	}
	if (ingress) {
		verdict = take_in(&account, skb->len);
		*posted |= account.posted;
	} else {
		verdict = take_shared(sw, &config->classes[tc & 7], queue, skb->len);
	}
	if (verdict == TAKEN && tagged)
		write_tag(skb, ingress, port);
	if (sw->in_bytes - sw->out_bytes > sw->peak_bytes)
		sw->peak_bytes = sw->in_bytes - sw->out_bytes;
	return verdict;
}

static __always_inline __u64 waiting(struct class_state *counts)
{
	return counts->in_bytes - counts->out_bytes;
}

static __always_inline void count_drop(struct __sk_buff *skb, struct class_state *counts)
{
	__sync_fetch_and_add(&counts->drop_packets, 1);
	__sync_fetch_and_add(&counts->drop_bytes, skb->len);
	if (is_cut(roce_of(skb)))
		__sync_fetch_and_add(&counts->trim_drops, 1);
}

/* Takes a frame into a switch; cuts it where its class may be and its queue has no room for it.
 * Then it is in another class, which `tc` tells.
 */
static __always_inline int enter_switch(struct __sk_buff *skb, struct port_config *config,
					struct port_state *state, __u32 port, __u32 *tc,
					__u32 *posted)
{
	struct class_config *cls = &config->classes[*tc & 7];
	struct class_state *counts = &state->classes[*tc & 7];
	__u32 length = skb->len;
	int cut = exceeds(cls, waiting(counts) + length) && trim(skb, cls);
	int verdict = DROPPED;

	if (!cut)
		verdict = admit(skb, config, port, *tc, waiting(counts), posted);
	if (verdict == DROPPED && (cut || trim(skb, cls))) {
		__sync_fetch_and_add(&counts->trim_packets, 1);
		__sync_fetch_and_add(&counts->trim_bytes, length - skb->len);
		*tc = cls->trim_dscp >> 3;
		counts = &state->classes[*tc & 7];
		verdict = admit(skb, config, port, *tc, waiting(counts), posted);
	}
	if (verdict == DROPPED)
		count_drop(skb, counts);
	return verdict;
}

SEC("tc")
int mmu_egress(struct __sk_buff *skb)
{
	__u32 port = skb->tc_classid, tc = 0, posted = 0;
	struct port_config *config = bpf_map_lookup_elem(&port_configs, &port);
	struct port_state *state = bpf_map_lookup_elem(&port_states, &port);
	struct class_state *counts;
	struct iphdr *ip;
	__u64 queue;
	int verdict;

	if (!config || !state)
		return TC_ACT_SHOT;
	verdict = control_verdict(skb);
	if (verdict != TC_ACT_UNSPEC) {
		if (is_pause(skb) && hear_pause(skb, port))
			wake_agent(skb);
		return verdict;
	}
	ip = ipv4_of(skb);
	if (ip)
		tc = ip->tos >> 5;
	if (config->flags & FLAG_SWITCH) {
		verdict = enter_switch(skb, config, state, port, &tc, &posted);
		if (verdict != TAKEN) {
			if (posted)
				wake_agent(skb);
			return DROP_SILENTLY;
		}
		ip = ipv4_of(skb);
	}
	counts = &state->classes[tc & 7];
	queue = waiting(counts);
	if (ip && is_markable(ip) &&
	    wins_mark(config, &config->classes[tc & 7], queue, counts->in_packets)) {
		bpf_skb_ecn_set_ce(skb);
		__sync_fetch_and_add(&counts->mark_packets, 1);
	}
	__sync_fetch_and_add(&counts->in_packets, 1);
	__sync_fetch_and_add(&counts->in_bytes, skb->len);
	if (queue + skb->len > counts->peak_bytes)
		counts->peak_bytes = queue + skb->len;
	if (posted)
		wake_agent(skb);
	skb->priority = HTB_MAJOR + HTB_FIRST_LEAF + (tc & 7);
	return TC_ACT_OK;
}

static __always_inline __u64 queued(struct port_state *state)
{
	__u64 packets = 0;

#pragma unroll
	for (int i = 0; i < CLASSES; i++)
		packets += state->classes[i].in_packets - state->classes[i].out_packets;
	return packets;
}

static __always_inline void count_gap(struct port_state *state, __u64 gap, __u64 ideal)
{
	__u64 late_us = gap > ideal ? (gap - ideal) / 1000 : 0;
	__u32 bucket = 0;

#pragma unroll
	for (int i = 0; i < GAP_BUCKETS - 1; i++)
		if (late_us >> i)
			bucket = i + 1;
	__sync_fetch_and_add(&state->late_gaps[bucket & (GAP_BUCKETS - 1)], 1);
}

/* The shaper lets a busy period begin a little fast (its burst), so the first gaps do not count. A
 * port of which a class is paused may have a queue and nothing to send.
 */
static __always_inline void measure_rate(struct port_config *config, struct port_state *state,
					 __u64 now, __u64 wire_bytes, int paused)
{
	__u64 gap = now - state->last_out_ns;

	if (state->run >= SETTLED && !paused) {
		__sync_fetch_and_add(&state->busy_ns, gap);
		__sync_fetch_and_add(&state->busy_wire_bytes, state->last_out_wire_bytes);
		__sync_fetch_and_add(&state->busy_gaps, 1);
		count_gap(state, gap, state->last_out_wire_bytes * config->ns_per_kib >> 10);
	}
	state->last_out_ns = now;
	state->last_out_wire_bytes = wire_bytes;
	state->run = queued(state) && !paused ? state->run + 1 : 0;
}

static __always_inline void leave_switch(struct __sk_buff *skb, struct port_config *config, __u32 tc,
					 __u32 *posted)
{
	struct switch_state *sw = bpf_map_lookup_elem(&switch_states, &config->switch_id);
	__u32 ingress = config->flags & FLAG_TAGS ? counted_at(skb) : 0;
	struct account account;

	if (!sw)
		return;
	if (ingress && open_account(&account, sw, config->switch_id, ingress, tc)) {
		give_back(&account, skb->len);
		*posted |= account.posted;
	} else {
		__sync_fetch_and_add(&sw->out_bytes, skb->len);
	}
}

/* A frame has left its sender's queue. Returns 0 when the sender's watchdog discards it: then it is
 * one of those that the sender dropped, and never was in its queue.
 */
static __always_inline int count_out(struct __sk_buff *skb, __u32 sender, __u32 tc, __u64 now,
				     __u32 *posted)
{
	struct port_config *config = bpf_map_lookup_elem(&port_configs, &sender);
	struct port_state *state = bpf_map_lookup_elem(&port_states, &sender);
	struct class_state *counts;
	__u32 length = skb->len;
	int discarded, tagged;

	if (!config || !state)
		return 1;
	counts = &state->classes[tc & 7];
	tagged = config->flags & FLAG_TAGS;
	discarded = tagged && discards_queue(sender, tc);
	if (discarded) {
		__sync_fetch_and_add(&counts->in_packets, -1);
		__sync_fetch_and_add(&counts->in_bytes, -(__u64)length);
		__sync_fetch_and_add(&counts->drop_packets, 1);
		__sync_fetch_and_add(&counts->drop_bytes, length);
	} else {
		__sync_fetch_and_add(&counts->out_packets, 1);
		__sync_fetch_and_add(&counts->out_bytes, length);
	}
	if (config->flags & FLAG_SWITCH)
		leave_switch(skb, config, tc, posted);
	measure_rate(config, state, now, length + WIRE_OVERHEAD, tagged && is_paused(sender));
	return !discarded;
}

SEC("tc")
int wire_out(struct __sk_buff *skb)
{
	__u32 port = skb->tc_classid, posted = 0;
	struct port_config *config = bpf_map_lookup_elem(&port_configs, &port);
	struct iphdr *ip;
	int there;

	if (!config || is_pause(skb))
		return TC_ACT_SHOT;
	ip = ipv4_of(skb);
	there = count_out(skb, config->peer, ip ? ip->tos >> 5 : 0, bpf_ktime_get_ns(), &posted);
	if (posted)
		wake_agent(skb);
	return there ? TC_ACT_OK : TC_ACT_SHOT;
}

static __always_inline int has_bit(__u32 *words, __u32 number)
{
	return words[(number >> 5) & (NUMBER_WORDS - 1)] >> (number & 31) & 1;
}

/* Address plan: 10.<plane>.<leaf>.<host>. */
static __always_inline int waits_for_whole(struct port_config *config, struct iphdr *ip)
{
	__u32 address = bpf_ntohl(ip->daddr), leaf = address >> 8 & 0xff;

	if (leaf == config->leaf)
		return has_bit(config->whole_hosts, address & 0xff);
	return has_bit(config->whole_leaves, leaf);
}

/* A frame leaves a queue when its transmission starts; this is when its last byte is here. The
 * shaper's burst lets a frame go before the line is free, but a line cannot reorder: a short frame
 * is not here before the long one that it follows.
 */
static __always_inline __u64 last_byte_ns(struct port_config *config, struct port_state *state,
					  __u32 length, __u64 now)
{
	__u64 bytes = (length < MIN_FRAME ? MIN_FRAME : length) + WIRE_OVERHEAD;
	__u64 end = now + (bytes * config->ps_per_byte + 500) / 1000;

	if (end < state->last_byte_ns)
		end = state->last_byte_ns;
	state->last_byte_ns = end;
	return end;
}

/* fq keeps the frames of one flow in order, and a later frame that is due sooner would wait for the
 * earlier one. So a flow, which the hash names, is what can never be overtaken.
 */
SEC("tc")
int wire_delay(struct __sk_buff *skb)
{
	__u32 port = skb->ingress_ifindex - FIRST_INTERFACE, whole, posted = 0;
	struct port_config *config = bpf_map_lookup_elem(&port_configs, &port);
	struct port_state *state = bpf_map_lookup_elem(&port_states, &port);
	__u64 now = bpf_ktime_get_ns(), due;
	struct iphdr *ip;
	int there = 1;

	if (!config || !state || is_pause(skb))
		return TC_ACT_SHOT;
	ip = ipv4_of(skb);
	if (config->flags & FLAG_SWITCH)
		there = count_out(skb, config->peer, ip ? ip->tos >> 5 : 0, now, &posted);
	if (posted) {
		wake_agent(skb);
		ip = ipv4_of(skb);
	}
	if (!there)
		return TC_ACT_SHOT;
	due = last_byte_ns(config, state, skb->len, now);
	whole = ip ? waits_for_whole(config, ip) : 1;
	if (!whole)
		due = now + config->header_ns;
	due += config->link_ns;
	bpf_set_hash(skb, port << 1 | whole);
	/* Only IP has a mark for it that the stack takes off again. */
	if (bpf_skb_set_tstamp(skb, due, BPF_SKB_TSTAMP_DELIVERY_MONO))
		skb->tstamp = due;
	return TC_ACT_OK;
}

static __always_inline void fill(struct nic_record *record, struct roce_frame *frame,
				 __u32 port, __u32 length, __u64 now)
{
	__u32 qp = bpf_ntohl(frame->bth.dest_qp), psn = bpf_ntohl(frame->bth.psn);

	record->time_ns = now;
	record->psn = psn & 0xffffff;
	record->dest_qp = qp & 0xffffff;
	record->aeth = bpf_ntohl(frame->aeth);
	record->src_ip = bpf_ntohl(frame->ip.saddr);
	record->port = port;
	record->length = length;
	record->udp_source = bpf_ntohs(frame->udp.source);
	record->opcode = frame->bth.opcode;
	record->tos = frame->ip.tos;
	record->ack_request = psn >> 31;
	record->becn = (qp >> 30) & 1;
	record->trimmed = is_cut(frame);
}

static __always_inline void fill_sack(struct __sk_buff *skb, struct nic_record *record)
{
	if (record->opcode == ROCE_ACKNOWLEDGE && record->length == SACK_FRAME)
		bpf_skb_load_bytes(skb, sizeof(struct roce_frame), &record->sack_word,
				   SACK_BYTES);
}

SEC("tc")
int nic_receive(struct __sk_buff *skb)
{
	__u32 port = skb->tc_classid, posted = 0;
	struct port_config *config = bpf_map_lookup_elem(&port_configs, &port);
	struct port_state *state = bpf_map_lookup_elem(&port_states, &port);
	__u64 now = bpf_ktime_get_ns();
	struct nic_record *record;
	struct roce_frame *frame;
	struct iphdr *ip;
	int there;

	if (!config || !state || is_pause(skb))
		return TC_ACT_SHOT;
	ip = ipv4_of(skb);
	there = count_out(skb, config->peer, ip ? ip->tos >> 5 : 0, now, &posted);
	if ((config->flags & FLAG_RECEIVER) && there && ip)
		posted |= receive(port, ip->tos >> 5, skb->len, now);
	if (posted) {
		wake_agent(skb);
		ip = ipv4_of(skb);
	}
	if (!there)
		return TC_ACT_SHOT;
	frame = ip ? roce_of(skb) : NULL;
	if (!frame)
		return TC_ACT_UNSPEC; /* to the next filter, which delays it, if there is one */
	if (is_cut(frame))
		__sync_fetch_and_add(&state->trimmed_packets, 1);
	record = bpf_ringbuf_reserve(&nic_ring, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&state->overruns, 1);
		return TC_ACT_SHOT;
	}
	fill(record, frame, port, skb->len, now);
	fill_sack(skb, record);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	__sync_fetch_and_add(&state->received_packets, 1);
	return TC_ACT_SHOT;
}

char LICENSE[] SEC("license") = "GPL";
