#!/usr/bin/env -S MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=131072 node --max-semi-space-size=1
// A small young generation: after a start the process only sees changes, and what a large one saves in time it keeps in memory. So do the C library's arenas,
// one for each thread, and the buffers of a load: with a threshold that is named it never keeps larger ones for later.
'use strict';
// Runs pointsman.js. What V8 compiled of it when it was built stands beside it, and is good for the same version and options of Node; any other compiles
// what it runs. V8 does not see that it was compiled on another architecture, and crashes on that (Node 20), so the name tells.
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { Script } = require('node:vm');

// For this process, not for those that it starts.
delete process.env.MALLOC_ARENA_MAX;
delete process.env.MALLOC_TRIM_THRESHOLD_;

const filename = join(__dirname, 'pointsman.js');

function compiled() {
  try {
    return readFileSync(join(__dirname, `pointsman.${process.arch}.cache`));
  } catch {
    return undefined;
  }
}

const script = new Script(readFileSync(filename, 'latin1'), { filename, cachedData: compiled() });
script.runInThisContext()({}, require, module, filename, __dirname);
