import { answerText, type Page } from './http-endpoint.js';

/** What is served at /debug with enableProfiling (behaviour §6.3). Nothing of it holds what is in the process's memory. */
export function profilingPages(setVerbosity: (verbosity: number) => void): readonly (readonly [string, Page])[] {
  const text =
    (status: number, body: () => string): Page =>
    (_request, response) => {
      answerText(response, status, body());
    };
  // What answers is loaded when it is asked for: most processes are never profiled.
  const answers = () => import('./debug-answers.js');
  const takes =
    (kind: 'profile' | 'heap' | 'allocs'): Page =>
    async (_request, response, query) =>
      (await import('./profile-answer.js')).answerProfile(kind, query, response);
  const index: Page = async (_request, response) => {
    answerText(response, 200, (await answers()).INDEX);
  };
  const absent = (what: string): Page => text(501, () => `Node.js has no ${what} profile\n`);
  return [
    ['/debug/pprof', index],
    ['/debug/pprof/', index],
    ['/debug/pprof/profile', takes('profile')],
    ['/debug/pprof/heap', takes('heap')],
    ['/debug/pprof/allocs', takes('allocs')],
    [
      '/debug/pprof/goroutine',
      async (_request, response) => {
        answerText(response, 200, (await answers()).printResources());
      },
    ],
    // The arguments may hold credentials.
    ['/debug/pprof/cmdline', text(200, () => 'pointsman')],
    // Profiles bring their names along.
    ['/debug/pprof/symbol', text(200, () => 'num_symbols: 0\n')],
    ['/debug/pprof/threadcreate', absent('thread creation')],
    ['/debug/pprof/block', absent('blocking')],
    ['/debug/pprof/mutex', absent('mutex')],
    ['/debug/pprof/trace', text(501, () => 'Node.js writes no trace that Go tools read\n')],
    ['/debug/flags', text(200, () => 'v\n')],
    ['/debug/flags/v', async (request, response) => (await answers()).answerVerbosity(request, response, setVerbosity)],
  ];
}
