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
  const fits = (text: string): boolean => text.toLowerCase().includes(wanted.trim().toLowerCase());
  const shownFields = fields.filter(({ field, value }) => fits(field) || fits(value));
  const shownFlags = flags.filter(({ name, value }) => fits(name) || fits(value));
  return (
    <>
      {refused !== null && (
        <Trouble>The changed configuration is refused, and the one before it is in force: {refused}</Trouble>
      )}
      <p class="quiet">
        {files.length === 0 ? (
          'No file was read: flags and defaults alone.'
        ) : (
          <>
            Read from <Codes of={files} />.
          </>
        )}
      </p>
      <Warnings warnings={warnings} />
      <Filter wanted={wanted} onChange={setWanted} />
      <p class="unseen" role="status">
        {wanted === '' ? '' : `${counted(shownFields.length, 'field')}, ${counted(shownFlags.length, 'flag')}`}
      </p>
      <Section title="Fields" aside={counted(fields.length, 'field')}>
        <Table label="Fields" columns={['Field', 'Value']}>
          {shownFields.map((field) => (
            <Field key={field.field} of={field} />
          ))}
        </Table>
      </Section>
      <Section title="Flags" aside="each as it counts; credentials are left out">
        <Table label="Flags" columns={['Flag', 'Value']}>
          {shownFlags.map(({ name, value }) => (
            <tr key={name}>
              <th scope="row">
                <code>--{name}</code>
              </th>
              <td class="wide">
                <code>{value}</code>
              </td>
            </tr>
          ))}
        </Table>
      </Section>
    </>
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
    <Section title="Warnings" aside={'settings that do not do what one may think'}>
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

function Field({ of: { field, value, ineffective } }: { readonly of: ConfigurationField }): JSX.Element {
  return (
    <tr>
      <th scope="row">
        <code>{field}</code>
      </th>
      <td class="wide">
        <code class={ineffective === null ? undefined : 'quiet'}>{value}</code>
        {ineffective !== null && (
          <p class="warn-text">
            <Dot tone="warn" /> No effect: {ineffective}
          </p>
        )}
      </td>
    </tr>
  );
}
