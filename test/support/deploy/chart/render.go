// render CHART VALUES: prints what `helm template` makes of a chart, by the same engine and functions: Go's text/template with sprig, and those of Helm that
// charts here use. VALUES are whole, as JSON. A value that is not there fails, as with `helm template --strict`.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(path string) map[string]interface{} {
	text, err := os.ReadFile(path)
	must(err)
	values := map[string]interface{}{}
	must(yaml.Unmarshal(text, &values))
	return values
}

func toYaml(value interface{}) (string, error) {
	text, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(text), "\n"), err
}

func main() {
	chart, values := os.Args[1], read(os.Args[2])
	all := template.New("chart").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	// As in Helm, a chart reads nothing of the machine.
	delete(functions, "env")
	delete(functions, "expandenv")
	functions["toYaml"] = toYaml
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	all.Funcs(functions)
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	must(err)
	sort.Strings(paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must(err)
		_, err = all.New(filepath.Base(path)).Parse(string(text))
		must(err)
	}
	about := map[string]interface{}{}
	for name, value := range read(filepath.Join(chart, "Chart.yaml")) {
		about[strings.ToUpper(name[:1])+name[1:]] = value
	}
	release := map[string]interface{}{"Name": "pointsman", "Namespace": "kube-system", "Service": "Helm"}
	data := map[string]interface{}{"Values": values, "Chart": about, "Release": release}
	for _, path := range paths {
		if strings.HasPrefix(filepath.Base(path), "_") {
			continue
		}
		var text strings.Builder
		must(all.ExecuteTemplate(&text, filepath.Base(path), data))
		if strings.TrimSpace(text.String()) != "" {
			fmt.Printf("---\n%s\n", text.String())
		}
	}
}
