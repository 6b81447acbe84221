/** Functions that change what the kernel holds. */
export const WRITES: ReadonlySet<string> = new Set([
  'nftTransact',
  'nftTrace',
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
