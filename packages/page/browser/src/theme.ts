/** Light, dark, or as the system has it. */
export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'pointsman.theme';

/** What was chosen last; a browser that stores nothing follows the system. */
export function chosenTheme(): Theme {
  try {
    const stored = localStorage.getItem(KEY);
    return THEMES.find((each) => each === stored) ?? 'system';
  } catch {
    return 'system';
  }
}

export function chooseTheme(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It holds until the page is left.
  }
  showTheme(theme);
}

/** The style sheet does the rest. */
export function showTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
}
