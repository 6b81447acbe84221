// What `pointsman plan` and `pointsman dump` print, for one command line after the other: a process that answers many times costs a tenth of two
// that answer once. Each line of standard input is the arguments as JSON; each line of standard output is a Contents or { error }.
import { createInterface } from 'node:readline';
import { planAndDump } from './plan-and-dump.js';

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await planAndDump(JSON.parse(line) as readonly string[]).catch((error: unknown) => ({
    error: String(error),
  }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
