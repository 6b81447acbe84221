import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { chooseTheme, chosenTheme, THEMES, type Theme } from './theme.js';

/** What stands around the views of every page. */

/** The name of all this, and of what is shown. */
export function Brand({ node, href }: { readonly node: string | null; readonly href: string }): JSX.Element {
  return (
    <a class="brand" href={href} title={node ?? undefined}>
      <svg
        viewBox="0 0 16 16"
        fill="none"
        stroke="currentColor"
        stroke-width="2"
        stroke-linecap="round"
        aria-hidden="true"
      >
        <path d="M1 12.5H15" opacity="0.35" />
        <path d="M1 12.5C7.5 12.5 8 3.5 15 3.5" />
      </svg>
      <span>pointsman</span>
      {node !== null && <span class="node">{node}</span>}
    </a>
  );
}

const THEME_NAMES: Readonly<Record<Theme, string>> = { system: 'as the system has it', light: 'light', dark: 'dark' };
const THEME_ICONS: Readonly<Record<Theme, JSX.Element>> = {
  system: <path d="M8 1.5A6.5 6.5 0 0 0 8 14.5ZM8 1.5A6.5 6.5 0 0 1 8 14.5" />,
  light: (
    <path d="M8 5a3 3 0 1 0 0 6a3 3 0 0 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1" />
  ),
  dark: <path d="M13.5 9.5A6 6 0 0 1 6.5 2.5A6 6 0 1 0 13.5 9.5Z" />,
};

export function ThemeSwitch(): JSX.Element {
  const [theme, setTheme] = useState(chosenTheme);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
  const label = `Colours: ${THEME_NAMES[theme]}. Switch to ${THEME_NAMES[next]}`;
  return (
    <button
      type="button"
      class="theme"
      aria-label={label}
      title={label}
      onClick={() => {
        chooseTheme(next);
        setTheme(next);
      }}
    >
      <svg
        viewBox="0 0 16 16"
        fill={theme === 'system' ? 'currentColor' : 'none'}
        fill-opacity="0.25"
        stroke="currentColor"
        stroke-width="1.4"
        stroke-linecap="round"
        stroke-linejoin="round"
        aria-hidden="true"
      >
        {THEME_ICONS[theme]}
      </svg>
    </button>
  );
}
