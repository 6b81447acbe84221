// Services of every kind come and go: two sync periods later the kernel has, line by line, what it had before.
import { readFileSync } from 'node:fs';
import t from 'tap';
import { FAMILIES } from '../src/base/ip.js';
import { usually } from './support/extent.js';
import { FakeCluster, type Cluster } from './support/history/cluster.js';
import { HistoryNode } from './support/history/node.js';
import { NAMES, sliceName, someService, someSlice, type Name } from './support/history/objects.js';
import { SeededRandom } from './support/random.js';
import { parseStory } from './support/scenario-file.js';
import { LINUX_STORIES, SCENARIO_MODES } from './support/scenario-modes.js';

const SEED = 34;
const ROUNDS = usually(2, 8);
/** The Service that stays. */
const STEADY: Name = 'a';

const usual = readFileSync('test/scenarios/usual-cluster', 'utf8');

async function putAll(cluster: Cluster, random: SeededRandom, name: Name, variant: number): Promise<void> {
  await cluster.put(someService(random, name, variant));
  for (const family of FAMILIES) await cluster.put(someSlice(random, name, family, 0));
}

async function deleteAll(cluster: Cluster, name: Name): Promise<void> {
  await cluster.delete('Service', name);
  for (const family of FAMILIES) await cluster.delete('EndpointSlice', sliceName(name, family, 0));
}

for (const mode of LINUX_STORIES) {
  t.test(`${mode.definition.name}: Services of every kind come and go, and leave nothing`, async (t) => {
    const story = await parseStory('usual-cluster', { text: '', usual }, mode, SCENARIO_MODES);
    const cluster = await FakeCluster.start();
    t.teardown(() => cluster.stop());
    for (const write of story.steps.flatMap(({ writes }) => writes))
      if (write.type === 'put') await cluster.put(write.object);
    const random = new SeededRandom(SEED);
    await putAll(cluster, random, STEADY, 0);
    const node = await HistoryNode.start(mode, story, cluster);
    t.teardown(() => node.end());
    const contents = async (): Promise<readonly string[]> => {
      await node.follow(await cluster.mark());
      await node.twoPeriods();
      return [...node.world.contents()].sort();
    };
    const before = await contents();
    const others = NAMES.filter((name) => name !== STEADY);
    for (let round = 0; round < ROUNDS; round++) {
      for (const name of others) {
        await putAll(cluster, random, name, round);
        await node.follow(await cluster.mark());
        await node.sync();
      }
      t.notSame([...node.world.contents()].sort(), before, 'they are there');
      for (const name of others) await deleteAll(cluster, name);
      await node.follow(await cluster.mark());
      await node.sync();
      t.same(await contents(), before, `round ${round}`);
      t.same(node.world.leftovers(), []);
      const complaints = node.process.log.lines.filter((line) => /^(?:warn|error) /.test(line));
      t.same(complaints, [], 'the kernel refused nothing');
    }
  });
}
