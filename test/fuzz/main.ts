// Reads hostile manifests, configurations and kubeconfigs.
//
//     node .build/test/fuzz/main.js [--seconds 20] [--seed 1] [--round N]
//
// A seed repeats its inputs; a round repeats one of them and prints it.
import { parseArgs } from 'node:util';
import { fuzzOnce, type Find } from './fuzzer.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    round: { type: 'string' },
  },
});
const seed = Number(values.seed);
const show = ({ target, round, text, problem }: Find): void => {
  process.stdout.write(`--seed ${seed} --round ${round}: ${target}, ${text.length} characters: ${problem}\n`);
};

if (values.round !== undefined) {
  const find = await fuzzOnce(seed, Number(values.round));
  if (find !== null) process.stdout.write(`${JSON.stringify(find.text)}\n`);
  if (find !== null) show(find);
  process.exitCode = find === null ? 0 : 1;
} else {
  const end = performance.now() + Number(values.seconds) * 1000;
  let finds = 0;
  let round = 0;
  for (; performance.now() < end; round++) {
    const find = await fuzzOnce(seed, round);
    if (find === null) continue;
    finds++;
    show(find);
  }
  process.stdout.write(`seed ${seed}: ${round} texts, ${finds} not read as they must be\n`);
  process.exitCode = finds === 0 && round > 0 ? 0 : 1;
}
