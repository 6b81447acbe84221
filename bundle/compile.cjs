// compile.cjs SCRIPT CACHE: compiles every function of a script, and keeps it as V8 reads it again.
'use strict';
const { readFileSync, writeFileSync } = require('node:fs');
const { basename } = require('node:path');
const { setFlagsFromString } = require('node:v8');
const { Script } = require('node:vm');

const [, , filename, cache] = process.argv;
setFlagsFromString('--no-lazy');
// The name stays in the cache, which is not to tell where it was built: it is that of the image. A copy, as V8 keeps of a part the whole.
const place = Buffer.from(`/pointsman/dist/${basename(filename)}`).toString();
const script = new Script(readFileSync(filename, 'utf8'), { filename: place });
// As it will be when the cache is read: V8 compares its options.
setFlagsFromString('--lazy');
writeFileSync(cache, script.createCachedData());
