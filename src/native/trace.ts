import { messageOf } from '../base/error-message.js';

type Call = (...parameters: readonly unknown[]) => unknown;

/**
 * The same functions, which write one line a crossing, as strace does: `native nftTransact({family: ip, table: kube-proxy, operations: [2]}) = {messages: 6, bytes: 252} 0.3ms`.
 * It prints the length of lists and bytes, and one level of objects.
 */
export function traced<Functions extends object>(functions: Functions, write: (line: string) => void): Functions {
  const traces = Object.entries(functions).map(([name, call]) => [name, tracedCall(name, call as Call, write)]);
  return Object.fromEntries(traces) as Functions;
}

function tracedCall(name: string, call: Call, write: (line: string) => void): Call {
  return (...parameters) => {
    const start = process.hrtime.bigint();
    const shown = parameters.map((parameter) => show(parameter)).join(', ');
    const log = (outcome: string): void => {
      const took = Number(process.hrtime.bigint() - start) / 1e6;
      write(`native ${name}(${shown}) ${outcome} ${took.toFixed(3)}ms\n`);
    };
    const succeeded = <T>(value: T): T => {
      log(`= ${show(value)}`);
      return value;
    };
    const failed = (error: unknown): never => {
      log(`failed: ${messageOf(error)}`);
      throw error;
    };
    try {
      const value = call(...parameters.map((parameter) => tracedCallback(name, parameter, write)));
      return value instanceof Promise ? value.then(succeeded, failed) : succeeded(value);
    } catch (error) {
      return failed(error);
    }
  };
}

/** What the addon calls is traced as well. */
function tracedCallback(name: string, parameter: unknown, write: (line: string) => void): unknown {
  if (typeof parameter !== 'function') return parameter;
  return (...values: readonly unknown[]): unknown => {
    write(`native ${name} calls back with ${values.map((value) => show(value)).join(', ')}\n`);
    return (parameter as Call)(...values);
  };
}

function show(value: unknown, deep = true): string {
  if (value instanceof Uint8Array) return `${value.byteLength} bytes`;
  if (Array.isArray(value)) return `[${value.length}]`;
  if (typeof value === 'function') return 'function';
  if (typeof value !== 'object' || value === null) return String(value);
  if (!deep) return '{…}';
  return `{${Object.entries(value)
    .map(([field, content]) => `${field}: ${show(content, false)}`)
    .join(', ')}}`;
}
