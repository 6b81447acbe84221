/** This program's own release, as package.json has it. */
export const OWN_VERSION = '0.1.0';

/** Defined by bundle/bundle.mjs, and only in the bundle. */
declare const POINTSMAN_COMMIT: string | undefined;
declare const POINTSMAN_DATE: string | undefined;

/** The commit that the program was built from and its date; each is empty where unknown. */
export const BUILD = {
  commit: typeof POINTSMAN_COMMIT === 'undefined' ? '' : POINTSMAN_COMMIT,
  date: typeof POINTSMAN_DATE === 'undefined' ? '' : POINTSMAN_DATE,
};

/** For users: the release and what it was built from. */
export function ownVersion({ commit, date } = BUILD): string {
  const source = commit === '' ? [] : [`commit ${commit.replace(/^([0-9a-f]{12})[0-9a-f]*/, '$1')}`];
  return [`pointsman ${OWN_VERSION}`, ...source, ...(date === '' ? [] : [date])].join(', ');
}

/** As build information in Go has it: empty, clean or dirty. */
export function treeState({ commit } = BUILD): string {
  if (commit === '') return '';
  return commit.endsWith('-dirty') ? 'dirty' : 'clean';
}

/** The Kubernetes release whose node proxy this program behaves like. */
export const KUBERNETES_VERSION = 'v1.36.2';

/** Its minor number. */
export const KUBERNETES_MINOR = Number(KUBERNETES_VERSION.split('.')[1]);

/** The release before that one, as `major.minor`: the only one whose hidden metrics may be asked for. */
export const PREVIOUS_MINOR = '1.35';
