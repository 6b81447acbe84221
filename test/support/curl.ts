// needs: curl
import { execFile } from 'node:child_process';

/** What curl says of a request. */
export interface CurlAnswer {
  /** 0 for an answer of any status; else why there is none, as curl(1) numbers it. */
  readonly exit: number;
  /** 0: there is none. */
  readonly status: number;
  readonly body: string;
  /** What it wrote about the connection, with `-v`. */
  readonly reported: string;
}

/** One request of the real client; paths are sent as they are written. */
export function curl(url: string, ...options: readonly string[]): Promise<CurlAnswer> {
  const argv = ['--silent', '--show-error', '--max-time', '60', '--path-as-is', '--noproxy', '*', ...options];
  return new Promise((resolve) => {
    execFile('curl', [...argv, '--write-out', '\n%{http_code}', url], (error, stdout, stderr) => {
      const end = stdout.lastIndexOf('\n');
      const exit = error === null ? 0 : Number(error.code);
      resolve({ exit, status: Number(stdout.slice(end + 1)), body: stdout.slice(0, end), reported: stderr });
    });
  });
}
