// compile.cjs SCRIPT CACHE: compiles every function of a script, and keeps it as V8 reads it again.
'use strict';
const { readFileSync, writeFileSync } = require('node:fs');
const { setFlagsFromString } = require('node:v8');
const { Script } = require('node:vm');

const [, , filename, cache] = process.argv;
setFlagsFromString('--no-lazy');
const script = new Script(readFileSync(filename, 'utf8'), { filename });
// As it will be when the cache is read: V8 compares its options.
setFlagsFromString('--lazy');
writeFileSync(cache, script.createCachedData());
