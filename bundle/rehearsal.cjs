// Read before the program in a rehearsal (rehearse.mjs): keeps what it runs, and writes what V8 compiled of that when it is told to.
'use strict';
const { writeFileSync } = require('node:fs');
const promises = require('node:fs/promises');
const { basename } = require('node:path');
const v8 = require('node:v8');
const vm = require('node:vm');

const { setFlagsFromString } = v8;
const scripts = new Map();
vm.Script = class extends vm.Script {
  constructor(text, options) {
    // V8 compares its options with those that it had when it wrote down what it compiled.
    setFlagsFromString('--flush-bytecode');
    // The name stays in the cache, which is not to tell where it was built: it is that of the image. A copy, as V8 keeps of a part the whole.
    const place = Buffer.from(`/pointsman/dist/${basename(options.filename)}`).toString();
    super(text, { ...options, filename: place });
    setFlagsFromString('--no-flush-bytecode');
    scripts.set(options.filename, this);
  }
};
// So the program leaves them as they are, but where it collects garbage.
v8.setFlagsFromString = (flag) => {
  if (/-gc$/.test(flag)) setFlagsFromString(flag);
};

// Nothing is changed on the machine, whoever builds.
const { open } = promises;
promises.open = async (path, flags, ...more) => {
  if (flags !== undefined && flags !== 'r' && /^\/(?:host|proc|sys)\//.test(path))
    throw Object.assign(new Error(`EROFS: ${path} is left alone`), { code: 'EROFS' });
  return await open(path, flags, ...more);
};

process.on('message', (question) => {
  if (question !== 'write') return;
  setFlagsFromString('--flush-bytecode');
  for (const [file, script] of scripts)
    writeFileSync(file.replace(/js$/, `${process.arch}.cache`), script.createCachedData());
  process.exit(0);
});
