/* Pause (IEEE 802.1Qbb): what each ingress port and lossless class holds, XOFF, XON and headroom.
 *
 * A frame must tell at its egress through which port it came in, and again when it has left the
 * queue. What a kernel would keep beside a packet is lost in Open vSwitch's userspace datapath, so
 * it stands in the frame, in the source address, which no ICRC covers and a router writes too:
 *
 *   02:01:<ingress port><egress port>    ingress: where it is counted; 0 = nowhere
 *
 * Every switch port writes it. The egress port's peer is where the frame comes in next, so nothing
 * has to be written on ingress (where the userspace datapath has taken its copy already). A host's
 * frames carry the host's own address, 02:00 and its IP address.
 */
#define FLAG_TAGS 2
#define KICK_MARK 0x7ab1ab01 /* a frame that only makes the shaper look at its queues again */
#define KICK_LENGTH 60
#define WAKE_MARK 0x7ab1ab02 /* a copy that only wakes the agent */
#define LOOPBACK 1           /* interface index, in every namespace */
#define HTB_NOWHERE 0x1f     /* the leaf that takes nothing */
#define ETH_P_PAUSE 0x8808
#define HOST_PREFIX 0x0200
#define SWITCH_PREFIX 0x0201
#define EVENT_XOFF 1
#define EVENT_XON 2
#define EVENT_FRAME 3
#define PFC_OPCODE 0x0101
#define DROPPED 0
#define TAKEN 1
#define DISCARDED 2 /* and counted where it came from */

struct pause_config {
	__u32 alpha;      /* XOFF in 1/256 of the free shared buffer; 0 = static */
	__u32 xoff;       /* static XOFF, bytes */
	__u32 xon_offset; /* bytes */
	__u32 headroom;   /* bytes; 0 = the class is lossy at this ingress port */
	__u32 discard;    /* as an egress port: drop the queue and what comes (watchdog) */
	__u32 reserved;
};

struct pause_configs {
	struct pause_config classes[CLASSES];
	__u64 closed;     /* as an egress port: bit n = the gate of class n is closed */
};

struct pause_state {
	__u64 bytes;          /* shared buffer that frames from this port take */
	__u64 headroom;       /* headroom that they take */
	__u64 peak_headroom;
	__u64 changes;        /* of XOFF and XON; odd = paused */
	__u64 drop_packets;   /* frames for which the headroom was too small */
	__u64 lost_events;    /* the ring was full */
};

struct pause_states {
	struct pause_state classes[CLASSES];
};

struct pause_event {
	__u64 time_ns;
	__u64 changes;   /* or, of a frame, its classes as bits */
	__u64 bytes;     /* these two, of a frame: its eight times, as they stand in it */
	__u64 headroom;
	__u64 limit;     /* XOFF at that moment */
	__u32 port;
	__u8 tc;
	__u8 kind;
	__u8 pad[10];
};

struct guard {
	struct bpf_spin_lock lock;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct pause_configs);
} pause_configs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct pause_states);
} pause_states SEC(".maps");

/* What an ingress port holds is part of what its switch holds: one lock for all of a switch. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SWITCHES);
	__type(key, __u32);
	__type(value, struct guard);
} switch_guards SEC(".maps");

/* IPv4 address of a host, network byte order -> its port. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, __u32);
} host_ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1024 * 1024);
} pause_ring SEC(".maps");

/* One of a switch's books on an ingress port and class. */
struct account {
	struct switch_state *sw;
	struct pause_config *config;
	struct pause_state *state;
	struct guard *guard;
	__u32 port;
	__u32 tc;
	__u32 posted; /* something for the agent */
};

static __always_inline int is_pause(struct __sk_buff *skb)
{
	return skb->protocol == bpf_htons(ETH_P_PAUSE);
}

/* Frames of the fabric's own are in no class, and not counted. Pause frames pass the shaper by, as
 * they pass every queue by. A kick makes the shaper look at its queues and goes nowhere; the short
 * frame before it goes nowhere either, and lets the call that sends both succeed.
 */
static __always_inline int control_verdict(struct __sk_buff *skb)
{
	if (is_pause(skb)) {
		skb->priority = HTB_MAJOR;
		return TC_ACT_OK;
	}
	if (skb->mark != KICK_MARK)
		return TC_ACT_UNSPEC;
	if (skb->len < KICK_LENGTH)
		return TC_ACT_STOLEN;
	skb->priority = HTB_MAJOR + HTB_NOWHERE;
	return TC_ACT_OK;
}

static __always_inline __be16 *source_of(struct __sk_buff *skb)
{
	struct ethhdr *eth = (void *)(long)skb->data;

	if ((void *)(eth + 1) > (void *)(long)skb->data_end)
		return NULL;
	return (__be16 *)eth->h_source;
}

/* The port of the switch through which a frame came in; 0 when that cannot be told. */
static __always_inline __u32 came_in_by(struct __sk_buff *skb, __u32 switch_id)
{
	__be16 *source = source_of(skb);
	__u32 sender = 0, port, address, *found;
	struct port_config *config;

	if (!source)
		return 0;
	if (source[0] == bpf_htons(SWITCH_PREFIX)) {
		sender = bpf_ntohs(source[2]);
	} else if (source[0] == bpf_htons(HOST_PREFIX)) {
		address = bpf_htonl((__u32)bpf_ntohs(source[1]) << 16 | bpf_ntohs(source[2]));
		found = bpf_map_lookup_elem(&host_ports, &address);
		sender = found ? *found : 0;
	}
	config = bpf_map_lookup_elem(&port_configs, &sender);
	port = config ? config->peer : 0;
	config = bpf_map_lookup_elem(&port_configs, &port);
	if (!config || !(config->flags & FLAG_SWITCH) || config->switch_id != switch_id)
		return 0;
	return port;
}

/* Where a frame that has left a queue was counted in; 0 = nowhere. */
static __always_inline __u32 counted_at(struct __sk_buff *skb)
{
	__be16 *source = source_of(skb);

	if (!source || source[0] != bpf_htons(SWITCH_PREFIX))
		return 0;
	return bpf_ntohs(source[1]);
}

static __always_inline int discards_queue(__u32 port, __u32 tc)
{
	struct pause_configs *configs = bpf_map_lookup_elem(&pause_configs, &port);

	return configs && configs->classes[tc & 7].discard;
}

/* Whether the watchdog of this egress port, or of the one that a frame comes from, drops it. */
static __always_inline int discards(struct __sk_buff *skb, __u32 port, __u32 tc)
{
	__be16 *source;

	if (discards_queue(port, tc))
		return DROPPED;
	source = source_of(skb);
	if (source && source[0] == bpf_htons(SWITCH_PREFIX) &&
	    discards_queue(bpf_ntohs(source[2]), tc))
		return DISCARDED;
	return TAKEN;
}

static __always_inline int is_paused(__u32 port)
{
	struct pause_configs *configs = bpf_map_lookup_elem(&pause_configs, &port);

	return configs && configs->closed;
}

static __always_inline void write_tag(struct __sk_buff *skb, __u32 ingress, __u32 egress)
{
	__be16 *source = source_of(skb);

	if (!source)
		return;
	source[0] = bpf_htons(SWITCH_PREFIX);
	source[1] = bpf_htons(ingress);
	source[2] = bpf_htons(egress);
}

static __always_inline int open_account(struct account *account, struct switch_state *sw,
					__u32 switch_id, __u32 port, __u32 tc)
{
	struct pause_configs *configs = bpf_map_lookup_elem(&pause_configs, &port);
	struct pause_states *states = bpf_map_lookup_elem(&pause_states, &port);

	account->guard = bpf_map_lookup_elem(&switch_guards, &switch_id);
	if (!configs || !states || !account->guard)
		return 0;
	account->sw = sw;
	account->config = &configs->classes[tc & 7];
	account->state = &states->classes[tc & 7];
	account->port = port;
	account->tc = tc & 7;
	account->posted = 0;
	return 1;
}

static __always_inline __u64 free_shared(struct switch_state *sw)
{
	__u64 used = sw->in_bytes - sw->out_bytes - sw->headroom_bytes;
	__u64 total = sw->buffer_bytes - sw->reserved_bytes;

	return used < total ? total - used : 0;
}

static __always_inline __u64 xoff_limit(struct pause_config *config, __u64 room)
{
	if (config->alpha)
		return (room * config->alpha) >> ALPHA_SHIFT;
	return config->xoff < room ? config->xoff : room;
}

/* Wakes the agent, which listens at the loopback device of every namespace. The ring's own wake-up
 * takes an interrupt that User-Mode Linux does not have: there it comes with the next tick.
 */
static __always_inline void wake_agent(struct __sk_buff *skb)
{
	__u32 mark = skb->mark;

	skb->mark = WAKE_MARK;
	bpf_clone_redirect(skb, LOOPBACK, 0);
	skb->mark = mark;
}

static __always_inline void post(struct account *account, struct pause_event *seen)
{
	struct pause_event *event = bpf_ringbuf_reserve(&pause_ring, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&account->state->lost_events, 1);
		return;
	}
	__builtin_memcpy(event, seen, sizeof(*event));
	event->time_ns = bpf_ktime_get_ns();
	event->port = account->port;
	event->tc = account->tc;
	event->kind = seen->changes & 1 ? EVENT_XOFF : EVENT_XON;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	account->posted = 1;
}

struct pause_frame {
	struct ethhdr eth;
	__be16 opcode;
	__be16 classes;
	__be16 quanta[CLASSES];
} __attribute__((packed));

/* A pause frame that somebody sends who is not the agent, such as a program on a host: the agent does
 * what it says. Its addresses do not matter. Returns whether there is something for the agent.
 */
static __always_inline __u32 hear_pause(struct __sk_buff *skb, __u32 port)
{
	struct pause_frame *frame;
	struct pause_event *event;

	if (skb->mark == KICK_MARK || bpf_skb_pull_data(skb, sizeof(*frame)))
		return 0;
	frame = (void *)(long)skb->data;
	if ((void *)(frame + 1) > (void *)(long)skb->data_end ||
	    frame->opcode != bpf_htons(PFC_OPCODE) || !frame->classes)
		return 0;
	event = bpf_ringbuf_reserve(&pause_ring, sizeof(*event), 0);
	if (!event)
		return 0;
	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = bpf_ktime_get_ns();
	event->changes = bpf_ntohs(frame->classes) & 0xff;
	__builtin_memcpy(&event->bytes, frame->quanta, sizeof(frame->quanta));
	event->port = port;
	event->kind = EVENT_FRAME;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 1;
}

static __always_inline void note(struct pause_state *state, __u64 limit, struct pause_event *seen)
{
	state->changes++;
	seen->changes = state->changes;
	seen->bytes = state->bytes;
	seen->headroom = state->headroom;
	seen->limit = limit;
}

/* Takes a frame of a lossless class into the shared buffer, or into the headroom once XOFF is
 * crossed, and then pauses the sender. Drops it when the headroom is too small.
 */
static __always_inline int take_in(struct account *account, __u64 length)
{
	struct pause_config *config = account->config;
	struct pause_state *state = account->state;
	struct switch_state *sw = account->sw;
	struct pause_event seen = {};
	__u64 room, limit;
	int verdict = TAKEN, fits;

	bpf_spin_lock(&account->guard->lock);
	room = free_shared(sw);
	limit = xoff_limit(config, room);
	fits = !state->headroom && state->bytes + length <= limit;
	if (fits) {
		state->bytes += length;
		limit = xoff_limit(config, room > length ? room - length : 0);
	} else if (state->headroom + length <= config->headroom) {
		state->headroom += length;
		sw->headroom_bytes += length;
		if (state->headroom > state->peak_headroom)
			state->peak_headroom = state->headroom;
	} else {
		state->drop_packets++;
		verdict = DROPPED;
	}
	if (verdict == TAKEN)
		__sync_fetch_and_add(&sw->in_bytes, length);
	if (!(state->changes & 1) && (!fits || state->bytes > limit))
		note(state, limit, &seen);
	bpf_spin_unlock(&account->guard->lock);
	if (seen.changes)
		post(account, &seen);
	return verdict;
}

/* Gives back what a frame took that has left its queue: of the headroom first. */
static __always_inline void give_back(struct account *account, __u64 length)
{
	struct pause_config *config = account->config;
	struct pause_state *state = account->state;
	struct switch_state *sw = account->sw;
	struct pause_event seen = {};
	__u64 part, limit;

	bpf_spin_lock(&account->guard->lock);
	part = state->headroom < length ? state->headroom : length;
	state->headroom -= part;
	sw->headroom_bytes -= part;
	part = length - part;
	state->bytes -= state->bytes < part ? state->bytes : part;
	__sync_fetch_and_add(&sw->out_bytes, length);
	limit = xoff_limit(config, free_shared(sw));
	if ((state->changes & 1) && !state->headroom &&
	    (!state->bytes || !config->headroom || state->bytes + config->xon_offset <= limit))
		note(state, limit, &seen);
	bpf_spin_unlock(&account->guard->lock);
	if (seen.changes)
		post(account, &seen);
}
