/** Functions that change what the kernel holds. */
export const WRITES: ReadonlySet<string> = new Set([
  'nftTransact',
  'conntrackDelete',
  'conntrackChallenge',
  'iptablesRestore',
  'accountCreate',
  'timeoutSet',
  'timeoutDelete',
  'ipvsApply',
  'ipvsSetTimeouts',
  'ipsetApply',
  'linkEnsureDummy',
  'linkDelete',
  'addressApply',
  'hcnApply',
]);
