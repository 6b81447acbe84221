import { useEffect, useRef } from 'preact/hooks';
import { go } from './route.js';

/** What `/` leads to. */
export const SEARCH_ID = 'search';

/** It was asked for where it was not there yet. */
let isWanted = false;

/** Whether the search is to have the focus when it appears: once. */
export function takeWish(): boolean {
  const was = isWanted;
  isWanted = false;
  return was;
}

/** `/` is for searching, wherever one is and nothing is typed into. */
export function useSearchKey(): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      event.preventDefault();
      const search = document.getElementById(SEARCH_ID);
      isWanted = search === null;
      if (search === null) go({ view: 'services' });
      else search.focus();
    };
    addEventListener('keydown', pressed);
    return () => {
      removeEventListener('keydown', pressed);
    };
  }, []);
}

/** Escape, wherever the focus is and nothing nearer has used it. @param act null: there is nothing to do. */
export function useEscape(act: (() => void) | null): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key === 'Escape' && !event.defaultPrevented) latest.current?.();
    };
    addEventListener('keydown', pressed);
    return () => {
      removeEventListener('keydown', pressed);
    };
  }, []);
}

/** `?` shows what keys do. */
export function useHelpKey(show: () => void): void {
  const latest = useRef(show);
  latest.current = show;
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key === '?' && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target))
        latest.current();
    };
    addEventListener('keydown', pressed);
    return () => {
      removeEventListener('keydown', pressed);
    };
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && ['INPUT', 'SELECT', 'TEXTAREA'].includes(target.tagName);
}
