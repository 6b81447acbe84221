import t from 'tap';
import { flowTableSize } from '../../src/host/linux/host.js';

const FOLDER = '/proc/sys/net/netfilter';

const reading = (files: Readonly<Record<string, string>>): ReturnType<typeof flowTableSize> =>
  flowTableSize((path) => {
    const text = files[path];
    if (text === undefined) throw new Error(`ENOENT: ${path}`);
    return text;
  });

t.test('The size of the table of connections is read from its sysctls', (t) => {
  const files = { [`${FOLDER}/nf_conntrack_count`]: '41\n', [`${FOLDER}/nf_conntrack_max`]: '262144\n' };
  t.same(reading(files), { entries: 41, limit: 262144 });
  t.end();
});

t.test('A table of connections that is not loaded, or has no limit, has no size', (t) => {
  t.equal(reading({}), null);
  t.equal(reading({ [`${FOLDER}/nf_conntrack_count`]: '41\n', [`${FOLDER}/nf_conntrack_max`]: '0\n' }), null);
  t.equal(reading({ [`${FOLDER}/nf_conntrack_count`]: 'x', [`${FOLDER}/nf_conntrack_max`]: '9' }), null);
  t.end();
});
