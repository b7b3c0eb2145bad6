/* Receivers that are slower than their links: a NIC's buffer, which its host empties at some rate.
 *
 * What lies in it is not kept, only how much it would be: the level falls with time and rises with
 * every frame. Above XOFF the host pauses its leaf. Nothing here notices the fall below XON, since
 * no frame comes while all is paused: the agent works out when that is, and looks.
 */
#define FLAG_RECEIVER 4

struct receiver_config {
	__u64 ns_per_kib;  /* that the host takes; 0 = it takes nothing */
	__u64 from_ns;     /* it is slow from here on, and otherwise as fast as its link */
	__u64 until_ns;
	__u32 xoff;        /* bytes */
	__u32 xon;
	__u32 classes;     /* bit n: class n is lossless */
	__u32 reserved;
};

struct level {
	__u64 bytes;       /* at that time */
	__u64 time_ns;
	__u64 changes;     /* of XOFF and XON; odd = paused */
};

struct receiver_state {
	struct level classes[CLASSES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct receiver_config);
} receiver_configs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct receiver_state);
} receiver_states SEC(".maps");

static __always_inline __u64 level_at(struct receiver_config *config, struct level *level, __u64 now)
{
	__u64 taken;

	if (!config->ns_per_kib)
		return level->bytes;
	taken = ((now - level->time_ns) << 10) / config->ns_per_kib;
	return taken < level->bytes ? level->bytes - taken : 0;
}

/* A frame comes to a host's port. Returns whether there is something for the agent. */
static __always_inline __u32 receive(__u32 port, __u32 tc, __u32 length, __u64 now)
{
	struct receiver_config *config = bpf_map_lookup_elem(&receiver_configs, &port);
	struct receiver_state *state = bpf_map_lookup_elem(&receiver_states, &port);
	struct pause_event *event;
	struct level *level;

	if (!config || !state || !(config->classes >> (tc & 7) & 1))
		return 0;
	level = &state->classes[tc & 7];
	if (now < config->from_ns || now >= config->until_ns) {
		level->bytes = 0;
		return 0;
	}
	level->bytes = level_at(config, level, now) + length;
	level->time_ns = now;
	if ((level->changes & 1) || level->bytes <= config->xoff)
		return 0;
	event = bpf_ringbuf_reserve(&pause_ring, sizeof(*event), 0);
	if (!event)
		return 0; /* the next frame tries again */
	level->changes++;
	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = now;
	event->changes = level->changes;
	event->bytes = level->bytes;
	event->limit = config->xoff;
	event->port = port;
	event->tc = tc & 7;
	event->kind = EVENT_XOFF;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 1;
}
