import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Configuration, ConfigurationField } from '../../../src/api.js';
import { useAnswer } from '../ask.js';
import { counted } from '../format.js';
import { Codes, Dot, Section, Table, Trouble } from '../parts.js';

/** What is in force, and what of it does nothing. */
export function ConfigurationView({ version }: { readonly version: number }): JSX.Element {
  const { answer, error } = useAnswer('api/configuration', {}, version);
  return (
    <>
      <div class="page-head">
        <h1>Configuration</h1>
        <p>as it is in force</p>
      </div>
      {error !== null && <Trouble>{error}</Trouble>}
      {answer === null ? error === null && <p class="quiet">Asking the process…</p> : <Loaded configuration={answer} />}
    </>
  );
}

function Loaded({ configuration }: { readonly configuration: Configuration }): JSX.Element {
  const { fields, warnings, flags, files, refused } = configuration;
  const [wanted, setWanted] = useState('');
  const [changedOnly, setChangedOnly] = useState(false);
  const isShown = (name: string, { value, initial }: Pick<ConfigurationField, 'value' | 'initial'>): boolean =>
    (!changedOnly || initial !== null) &&
    [name, value].some((text) => text.toLowerCase().includes(wanted.trim().toLowerCase()));
  const shownFields = fields.filter((each) => isShown(each.field, each));
  const shownFlags = flags.filter((each) => isShown(each.name, each));
  return (
    <>
      {refused !== null && (
        <Trouble>The changed configuration is refused, and the one before it is in force: {refused}</Trouble>
      )}
      <p class="quiet">
        {files.length === 0 ? (
          'No file was read: only flags and defaults count.'
        ) : (
          <>
            Read from <Codes of={files} />.
          </>
        )}
      </p>
      <Warnings warnings={warnings} />
      <Filter wanted={wanted} onChange={setWanted} />
      <ChangedOnly checked={changedOnly} onChange={setChangedOnly} />
      <p class="unseen" role="status">
        {wanted === '' && !changedOnly
          ? ''
          : `${counted(shownFields.length, 'field')}, ${counted(shownFlags.length, 'flag')}`}
      </p>
      <Section title="Fields" note={counted(fields.length, 'field')}>
        <Table label="Fields" columns={['Field', 'Value']}>
          {shownFields.map((field) => (
            <Field key={field.field} of={field} />
          ))}
        </Table>
      </Section>
      <Flags of={shownFlags} />
    </>
  );
}

function ChangedOnly({
  checked,
  onChange,
}: {
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
}): JSX.Element {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={checked}
        onChange={({ currentTarget }) => {
          onChange(currentTarget.checked);
        }}
      />
      Changed from the default
    </label>
  );
}

function Flags({ of }: { readonly of: Configuration['flags'] }): JSX.Element {
  return (
    <Section title="Flags" note="in force; credentials are left out">
      <Table label="Flags" columns={['Flag', 'Value']}>
        {of.map(({ name, value, initial }) => (
          <tr key={name}>
            <th scope="row">
              <code>--{name}</code>
            </th>
            <td class="wide">
              <code>{value}</code>
              <Default of={initial} />
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

function Filter({
  wanted,
  onChange,
}: {
  readonly wanted: string;
  readonly onChange: (wanted: string) => void;
}): JSX.Element {
  return (
    <div class="field filter">
      <label for="filter">Filter</label>
      <input
        id="filter"
        type="search"
        spellcheck={false}
        autocomplete="off"
        value={wanted}
        onInput={({ currentTarget }) => {
          onChange(currentTarget.value);
        }}
      />
    </div>
  );
}

function Warnings({ warnings }: { readonly warnings: readonly string[] }): JSX.Element | null {
  if (warnings.length === 0) return null;
  return (
    <Section title="Warnings" note="settings without the effect that their names suggest">
      <ul class="items">
        {warnings.map((warning) => (
          <li key={warning} class="reason">
            <Dot tone="warn" />
            <p>{warning}</p>
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** Where a value is not the default, which that is. */
function Default({ of }: { readonly of: string | null }): JSX.Element | null {
  if (of === null) return null;
  return (
    <>
      {' '}
      <span class="tag changed">changed</span>{' '}
      <span class="quiet">
        {of === '' ? (
          'no default'
        ) : (
          <>
            default <code>{of}</code>
          </>
        )}
      </span>
    </>
  );
}

function Field({ of: { field, value, initial, ineffective } }: { readonly of: ConfigurationField }): JSX.Element {
  return (
    <tr>
      <th scope="row">
        <code>{field}</code>
      </th>
      <td class="wide">
        <code class={ineffective === null ? undefined : 'quiet'}>{value}</code>
        <Default of={initial} />
        {ineffective !== null && (
          <p class="warn-text">
            <Dot tone="warn" /> No effect: {ineffective}
          </p>
        )}
      </td>
    </tr>
  );
}
