/** Whether V8 refused what it had compiled of the program when it was built (bundle/launch.cjs says so): for another version of Node, or other options. */
export function isCompiledCodeRejected(): boolean {
  return Reflect.get(globalThis, Symbol.for('pointsman.compiledCodeRejected')) === true;
}
