// Apart from what counts: the mode is known by its metrics before it is loaded.

export const INVALID_DROPPED = {
  name: 'iptables_ct_state_invalid_dropped_packets_total',
  help: 'Forwarded packets dropped because conntrack found them invalid.',
};
export const LOCALHOST_ACCEPTED = {
  name: 'iptables_localhost_nodeports_accepted_packets_total',
  help: 'First packets of connections to node ports on loopback.',
};

/** kube-proxy's metrics of what is counted (behaviour ME-16, ME-17). */
export const PACKET_METRICS = [INVALID_DROPPED, LOCALHOST_ACCEPTED] as const;
