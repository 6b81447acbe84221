/** What a rejected promise carries: an Error with these fields. Misuse (a bad field) throws a TypeError naming the field's path instead. */
export interface NativeErrorFields {
  /** `ERR_NETLINK` (kernel or socket), `ERR_NFT_JSON` (a command the compiler does not take; message names its path), `ERR_NETLINK_DECODE` (an answer that is not well formed), `ERR_IPTABLES` (a program failed; message holds its exit code and words), `ERR_HCN` (Windows' Host Networking Service, or an answer of it that is not well formed), `ERR_SERVICE` (Windows' service manager). */
  readonly code: 'ERR_NETLINK' | 'ERR_NFT_JSON' | 'ERR_NETLINK_DECODE' | 'ERR_IPTABLES' | 'ERR_HCN' | 'ERR_SERVICE';
  /**
   * Symbolic errno such as `EEXIST`; null when there is none. ERR_IPTABLES: `ENOENT` there is no such program, `EAGAIN` the lock stayed taken or
   * the rules kept changing, `ETIMEDOUT` the program was killed. ERR_HCN and ERR_SERVICE: see {@link HcnAddon}.
   */
  readonly errno: string | null;
  /** The system or netlink call: `nft transaction`, `nft list`, `nft elements`, `nft generation`, `nft compile`, `nft max batch`, `nft watch`, `conntrack list`, `conntrack delete`, `iptables restore`, `iptables list`, `iptables sizes`, `iptables match`, `iptables remembering`, `account create`, `account packets`, `timeout list`, `timeout set`, `timeout delete`, `ipvs apply`, `ipvs services`, `ipvs destinations`, `ipvs remembered`, `ipvs timeouts`, `ipvs set timeouts`, `ipset names`, `ipset apply`, `ipset list`, `link addresses`, `all addresses`, `link ensure dummy`, `link delete`, `address apply`, `route watch`, `hcn version`, `hcn list`, `hcn apply`, `hcn watch`, `service connect`, `service report`. */
  readonly operation: string;
  /** The kernel's extended message, or the error record of Windows' Host Networking Service; null when there was none. */
  readonly kernelMessage: string | null;
  /** Text of the failing command or element, such as `add element frontends 10.96.0.1 . tcp . 80`; null when the failure is not one operation's. */
  readonly object: string | null;
  /** Index into `operations` of the failing operation, and of the element in it; null as above. */
  readonly index: number | null;
  readonly element: number | null;
}

/** An error of the addon: the kernel's, the socket's, the compiler's or a program's. Misuse is a TypeError and is not one of these. */
export type NativeError = Error & NativeErrorFields;

/** What became of operations of which each stands for itself. */
export interface Applied {
  /** In the order of the operations. */
  readonly refused: readonly NativeError[];
  /** The size of the messages that were sent, netlink's headers included. */
  readonly bytes: number;
}

const CODES: readonly string[] = [
  'ERR_NETLINK',
  'ERR_NFT_JSON',
  'ERR_NETLINK_DECODE',
  'ERR_IPTABLES',
  'ERR_HCN',
  'ERR_SERVICE',
] satisfies NativeErrorFields['code'][];

export function isNativeError(error: unknown): error is NativeError {
  if (!(error instanceof Error) || !('code' in error) || !('operation' in error)) return false;
  return typeof error.code === 'string' && CODES.includes(error.code);
}
