import t from 'tap';
import { processUsage } from '../../src/host/linux/process-usage.js';

const FILES: Readonly<Record<string, string>> = {
  limits: `Limit                     Soft Limit           Hard Limit           Units
Max open files            1024                 4096                 files
Max address space         unlimited            unlimited            bytes
`,
  stat: `7 (a name) with) S ${Array.from({ length: 30 }, (_, index) => index + 4).join(' ')}`,
  'net/netstat': 'TcpExt: InOctets\nTcpExt: 1\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 500 600\n',
};

t.test('process usage is read from /proc, where fields may be missing', (t) => {
  const { openFiles, ...usage } = processUsage((name) => FILES[name] ?? '');
  t.ok(openFiles > 0);
  t.same(usage, { virtualMemory: 23, virtualMemoryLimit: -1, openFilesLimit: 1024, received: 500, sent: 600 });
  const nothing = { virtualMemory: 0, virtualMemoryLimit: -1, openFilesLimit: -1, received: 0, sent: 0 };
  t.match(
    processUsage(() => ''),
    nothing,
  );
  t.ok(processUsage().virtualMemory > 1e7);
  t.end();
});
