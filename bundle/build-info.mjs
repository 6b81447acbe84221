// The commit that a build is made from, and its date. In a checkout git names them. Elsewhere they are what POINTSMAN_COMMIT and SOURCE_DATE_EPOCH (seconds
// since 1970) name, as for a build without .git in a container.
import { execFileSync } from 'node:child_process';
import { realpathSync } from 'node:fs';

/**
 * @param project a folder, the top of a checkout or not.
 * @returns the full hash of the commit, with `-dirty` for a checkout with changes, and a date such as 2026-01-31T12:00:00Z. Each is empty where unknown.
 */
export function buildInfo(project, environment = process.env) {
  const git = (...words) => {
    try {
      const options = { cwd: project, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] };
      return execFileSync('git', words, options).trim();
    } catch {
      return '';
    }
  };
  const top = git('rev-parse', '--show-toplevel');
  const isCheckout = top !== '' && realpathSync(top) === realpathSync(project);
  const seconds = environment.SOURCE_DATE_EPOCH ?? (isCheckout ? git('log', '-1', '--format=%ct') : '');
  return {
    commit: environment.POINTSMAN_COMMIT ?? (isCheckout ? committed(git) : ''),
    date: /^\d+$/.test(seconds) ? new Date(Number(seconds) * 1000).toISOString().replace('.000', '') : '',
  };
}

function committed(git) {
  const changes = git('status', '--porcelain', '--untracked-files=no');
  return `${git('rev-parse', 'HEAD')}${changes === '' ? '' : '-dirty'}`;
}
