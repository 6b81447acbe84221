#!/usr/bin/env -S node --max-semi-space-size=2
// A small young generation: after a start the process only sees changes, and what a large one saves in time it keeps in memory.
'use strict';
// Runs pointsman.js. What V8 compiled of it when it was built stands beside it, and is good for the same version and options of Node; any other compiles
// what it runs.
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { Script } = require('node:vm');

const filename = join(__dirname, 'pointsman.js');

function compiled() {
  try {
    return readFileSync(join(__dirname, 'pointsman.cache'));
  } catch {
    return undefined;
  }
}

const script = new Script(readFileSync(filename, 'utf8'), { filename, cachedData: compiled() });
script.runInThisContext()({}, require, module, filename, __dirname);
