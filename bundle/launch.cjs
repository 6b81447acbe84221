#!/usr/bin/env node
'use strict';
// Runs pointsman.js, and files beside it of which it asks for a module. What V8 compiled of each when it was built stands beside it, and is good for the same
// version and options of Node; any other compiles what it runs. V8 does not see that it was compiled on another architecture, and crashes on that (Node 20),
// so the name tells.
const { createHash } = require('node:crypto');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { Script } = require('node:vm');

const PROGRAM = 'pointsman';

/**
 * V8 looks at its version, its options and the length of the script, not at its text. So the digest of Node's version and the text stands before the code.
 * Code of anything else is not shown to V8, which takes nothing for refused.
 */
function compiled(name, text) {
  try {
    const file = readFileSync(join(__dirname, `${name}.${process.arch}.cache`));
    const digest = createHash('sha256').update(process.version).update(text).digest();
    return digest.equals(file.subarray(0, digest.length)) ? file.subarray(digest.length) : file.subarray(0, 0);
  } catch {
    return undefined;
  }
}

/** What each file exports, which is there before it has run to its end. */
const files = new Map();
/** What modules export, by the file and their name: objects of values, which take less to read than the getters of a module that is bundled. */
const modules = new Map();
/** It has no state, so it goes when nobody uses it, and is read anew when somebody does. */
const FORGOTTEN = 'yaml';
/** @type {WeakRef<object> | undefined} */
let forgotten;

function run(name) {
  const filename = join(__dirname, `${name}.js`);
  const text = readFileSync(filename);
  const script = new Script(text.latin1Slice(), { filename, cachedData: compiled(name, text) });
  if (name === PROGRAM && script.cachedDataRejected) globalThis[Symbol.for('pointsman.compiledCodeRejected')] = true;
  const module = { exports: {} };
  if (name !== FORGOTTEN) files.set(name, module);
  script.runInThisContext()(module.exports, find, module, filename, __dirname);
  return module;
}

/** `./FILE.js:MODULE`, or what Node finds. */
function find(wanted) {
  const [, name, path] = /^\.\/([\w-]+)\.js:(.+)$/.exec(wanted) ?? [];
  if (path === undefined) return require(wanted);
  let found = name === FORGOTTEN ? forgotten?.deref() : modules.get(wanted);
  if (found === undefined) {
    found = Object.defineProperty({ ...(files.get(name) ?? run(name)).exports.find(path) }, '__esModule', {
      value: true,
    });
    if (name === FORGOTTEN) forgotten = new WeakRef(found);
    else modules.set(wanted, found);
  }
  return found;
}

run(PROGRAM);
