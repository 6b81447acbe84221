/** Functions that change what the kernel holds. */
export const WRITES: ReadonlySet<string> = new Set([
  'nftTransact',
  'conntrackDelete',
  'conntrackChallenge',
  'iptablesRestore',
  'accountCreate',
  'ipvsApply',
  'ipvsSetTimeouts',
  'ipsetApply',
  'linkEnsureDummy',
  'linkDelete',
  'addressApply',
  'hcnApply',
]);
