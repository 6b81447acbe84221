// Apart from what counts: the mode is known by its metrics before it is loaded.

/** kube-proxy's metric of what is counted (behaviour SV-36). */
export const REJECTED_ON_LOOPBACK = {
  name: 'nftables_localhost_nodeport_rejected_packets_total',
  help: 'UDP and SCTP packets to node ports on loopback, which no listener serves.',
  labels: ['ip_family', 'protocol'],
} as const;
