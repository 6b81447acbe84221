import { durationNanoseconds, parseDuration } from '../duration.js';
import type { Section } from './section.js';
import type { Rule } from './types.js';

/** Conditions on several fields that more than one kind has. */

/** At most one of the fields. */
export function exclusive(...names: readonly string[]): Rule {
  return {
    name: 'exclusive',
    check: (section) => {
      const [first, ...others] = names.filter((name) => section.has(name));
      for (const name of others) section.refuse('exclusive', name, `must not be given beside ${first ?? ''}`);
    },
  };
}

/** At least one of the fields. */
export function someOf(...names: readonly string[]): Rule {
  return {
    name: 'required',
    check: (section) => {
      if (!names.some((name) => section.has(name))) section.refuse('required', '', `needs ${names.join(' or ')}`);
    },
  };
}

/** A field that means something only beside another. */
export function needs(name: string, other: string): Rule {
  return {
    name: 'requires',
    check: (section) => {
      if (section.has(name) && !section.has(other)) section.refuse('requires', name, `needs ${other} beside it`);
    },
  };
}

/** A number or duration that must not be above another, where both are given or have defaults; `strictly`: nor equal to it. */
export function atMost(name: string, other: string, strictly: 'strictly' | null = null): Rule {
  return {
    name: 'order',
    check: (section) => {
      const [one, two] = [amount(section, name), amount(section, other)];
      if (one === null || two === null || (strictly === null ? one <= two : one < two)) return;
      section.refuse('order', name, `must ${strictly === null ? 'not be above' : 'be below'} ${other}`);
    },
  };
}

/** An entry of a list that must stand alone in it. */
export function alone(name: string, entry: string): Rule {
  return {
    name: 'exclusive',
    check: (section) => {
      const entries = section.texts(name);
      if (entries.length > 1 && entries.includes(entry))
        section.refuse('exclusive', name, `has ${entry} beside others`);
    },
  };
}

/** A condition of one kind, by name. */
export function rule(name: string, check: (section: Section) => void): Rule {
  return { name, check };
}

/** In nanoseconds where it is a duration. */
function amount(section: Section, name: string): number | bigint | null {
  const duration = parseDuration(section.text(name));
  return duration === null ? section.number(name) : durationNanoseconds(duration);
}
