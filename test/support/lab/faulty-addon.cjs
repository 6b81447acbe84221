// The addon with faults, for POINTSMAN_ADDON. POINTSMAN_FAULTS says which, as JSON:
//   kill    { call, when }: SIGKILL at the transaction of this number, `before` it, while the kernel works on it (`during`), or `after` its answer
//   refuse  { name: errno }: calls of these functions fail
//   spoil   { set, key }: the element of this key, in hexadecimal, that is added to a verdict map of this name leads to no chain, which the kernel refuses
//   while   file without which no transaction is counted for "kill" and nothing refused or spoiled; null: always
//   rate    part of all calls that fail, drawn from seed
//   calls   file to which the names of calls are written, a line each
'use strict';
const { appendFileSync, existsSync } = require('node:fs');
const { join } = require('node:path');

const addon = require(join(__dirname, '..', '..', '..', 'build', 'Release', 'pointsman.node'));
const {
  kill = null,
  refuse = {},
  spoil = null,
  while: condition = null,
  rate = 0,
  seed = 1,
  calls = null,
} = JSON.parse(process.env.POINTSMAN_FAULTS);

const ERRNOS = ['EBUSY', 'ENOBUFS', 'EINTR', 'ENOSPC', 'ENOMEM', 'EPERM'];
const ASYNCHRONOUS = ['nftTransact', 'nftList', 'nftGeneration', 'conntrackList', 'conntrackDelete'];

/** mulberry32 */
let state = seed;
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}

function failure(name, errno) {
  const fields = { kernelMessage: null, object: null, index: null, element: null };
  return Object.assign(new Error(`${name}: ${errno} (injected)`), {
    code: 'ERR_NETLINK',
    errno,
    operation: name,
    ...fields,
  });
}

function isOn() {
  return condition === null || existsSync(condition);
}

function isRefused(name) {
  return refuse[name] !== undefined && isOn();
}

function spoiled(operation) {
  if (spoil === null || operation.set !== spoil.set || !operation.gotoChains) return operation;
  const { keys, keyLength } = operation;
  const keyAt = (index) => Buffer.from(keys.subarray(index * keyLength, (index + 1) * keyLength)).toString('hex');
  const gotoChains = operation.gotoChains.map((chain, index) => (keyAt(index) === spoil.key ? 'no-such-chain' : chain));
  return { ...operation, gotoChains };
}

function end() {
  process.kill(process.pid, 'SIGKILL');
}

let count = 0;

async function call(name, method, args) {
  const counts = name === 'nftTransact' && isOn();
  if (counts) count++;
  const number = count;
  if (calls !== null) appendFileSync(calls, `${name}\n`);
  const due = (when) => counts && kill !== null && kill.call === number && kill.when === when;
  if (due('before')) end();
  if (isRefused(name)) throw failure(name, refuse[name]);
  const faulty = random() < rate;
  const errno = ERRNOS[Math.floor(random() * ERRNOS.length)];
  // Half of the transactions that fail have happened all the same: their answer was lost.
  const lost = faulty && name === 'nftTransact' && random() < 0.5;
  if (faulty && !lost) throw failure(name, errno);
  if (name === 'nftTransact' && isOn()) args[0] = { ...args[0], operations: args[0].operations.map(spoiled) };
  const answer = method(...args);
  if (due('during')) setImmediate(end);
  try {
    const value = await answer;
    if (lost) throw failure(name, 'ENOBUFS');
    return value;
  } finally {
    // A refusal is an answer too: what the kernel can do is tried by transactions that it refuses.
    if (due('after')) setImmediate(end);
  }
}

function faulty(name, method) {
  if (ASYNCHRONOUS.includes(name)) return (...args) => call(name, method, args);
  return (...args) => {
    if (isRefused(name)) throw failure(name, refuse[name]);
    return method(...args);
  };
}

for (const [subsystem, functions] of Object.entries(addon)) {
  const faults = Object.entries(functions).map(([name, method]) => [name, faulty(name, method)]);
  exports[subsystem] = Object.fromEntries(faults);
}
