// In place of a program like iptables-restore: hands the real one a table at a time, as the kernel gets them, and waits before it writes Services to
// nat while FOLDER/hold is there. Says that it waits by FOLDER/PROGRAM.waits.
//
//     halting-restore.cjs FOLDER PROGRAM [ARGUMENT ...]
'use strict';
const { spawnSync } = require('node:child_process');
const { existsSync, readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');

const [folder, program, ...words] = process.argv.slice(2);
const hold = join(folder, 'hold');
const PATH = process.env.PATH.split(':').filter((each) => each !== folder);
const tables = words.includes('--version') ? [''] : readFileSync(0, 'utf8').split(/(?<=^COMMIT\n)/m);
for (const input of tables) {
  if (/^\*nat\n[^]*^:KUBE-SVC-/m.test(input) && existsSync(hold)) {
    writeFileSync(join(folder, `${program}.waits`), '');
    const nothing = new Int32Array(new SharedArrayBuffer(4));
    while (existsSync(hold)) Atomics.wait(nothing, 0, 0, 10);
  }
  const { status } = spawnSync(program, words, {
    input,
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { ...process.env, PATH: PATH.join(':') },
  });
  if (status !== 0) process.exit(status ?? 1);
}
