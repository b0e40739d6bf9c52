// Render manifests/chart without Helm, which Debian 12 does not have: what Helm itself is made of (text/template, sprig,
// sigs.k8s.io/yaml), with the functions and objects that the chart uses. Values are merged as Helm merges them; missing
// keys are empty, as there. Prints one JSON document per line.
//
//	helm_render CHART RELEASE_NAMESPACE [API_VERSION,...] [--set=KEY=VALUE ...] [--values=FILE ...]
//	helm_render - <YAML      documents of another origin in the same form, to compare with
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type files string

func (dir files) Get(name string) string {
	data, err := os.ReadFile(filepath.Join(string(dir), name))
	check(err)
	return string(data)
}

type versions []string

func (list versions) Has(version string) bool {
	for _, v := range list {
		if v == version {
			return true
		}
	}
	return false
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "helm_render:", err)
		os.Exit(1)
	}
}

func load(path string) map[string]interface{} {
	data, err := os.ReadFile(path)
	check(err)
	values := map[string]interface{}{}
	check(yaml.Unmarshal(data, &values))
	return values
}

func merge(into, from map[string]interface{}) {
	for key, value := range from {
		old, isMap := into[key].(map[string]interface{})
		if add, ok := value.(map[string]interface{}); ok && isMap {
			merge(old, add)
		} else {
			into[key] = value
		}
	}
}

// key.key=value, the part of --set that needs no escapes; values are typed as Helm types them.
func set(values map[string]interface{}, word string) {
	name, text, ok := strings.Cut(word, "=")
	if !ok {
		check(fmt.Errorf("--set %q has no =", word))
	}
	keys := strings.Split(name, ".")
	for _, key := range keys[:len(keys)-1] {
		next, isMap := values[key].(map[string]interface{})
		if !isMap {
			next = map[string]interface{}{}
			values[key] = next
		}
		values = next
	}
	var value interface{} = text
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		value = n
	} else if b, err := strconv.ParseBool(text); err == nil {
		value = b
	}
	values[keys[len(keys)-1]] = value
}

func functions(t *template.Template) template.FuncMap {
	f := sprig.TxtFuncMap()
	f["toYaml"] = func(v interface{}) string {
		data, err := yaml.Marshal(v)
		check(err)
		return strings.TrimSuffix(string(data), "\n")
	}
	f["fromJsonArray"] = func(text string) []interface{} {
		list := []interface{}{}
		check(json.Unmarshal([]byte(text), &list))
		return list
	}
	f["include"] = func(name string, data interface{}) (string, error) {
		var out strings.Builder
		err := t.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	return f
}

// Documents are told apart by lines of ---; one that holds nothing but comments is none.
func printDocuments(text string) {
	for _, part := range strings.Split("\n"+text, "\n---") {
		data, err := yaml.YAMLToJSON([]byte(part))
		if err != nil {
			check(fmt.Errorf("%w in:%s", err, part))
		}
		if !bytes.Equal(data, []byte("null")) {
			fmt.Println(string(data))
		}
	}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "-" {
		text, err := io.ReadAll(os.Stdin)
		check(err)
		printDocuments(string(text))
		return
	}
	if len(os.Args) < 3 {
		check(fmt.Errorf("which chart, and which namespace?"))
	}
	chart, namespace := os.Args[1], os.Args[2]
	values := load(filepath.Join(chart, "values.yaml"))
	var apis versions
	for _, arg := range os.Args[3:] {
		switch {
		case strings.HasPrefix(arg, "--set="):
			set(values, strings.TrimPrefix(arg, "--set="))
		case strings.HasPrefix(arg, "--values="):
			merge(values, load(strings.TrimPrefix(arg, "--values=")))
		default:
			apis = strings.Split(arg, ",")
		}
	}
	meta := load(filepath.Join(chart, "Chart.yaml"))
	data := map[string]interface{}{
		"Values":       values,
		"Chart":        map[string]interface{}{"Name": meta["name"], "Version": meta["version"]},
		"Release":      map[string]interface{}{"Name": "orbweaver", "Namespace": namespace},
		"Capabilities": map[string]interface{}{"APIVersions": apis},
		"Files":        files(chart),
	}
	t := template.New("chart").Option("missingkey=zero")
	t.Funcs(functions(t))
	names, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	sort.Strings(names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		check(err)
		_, err = t.New(filepath.Base(name)).Parse(string(text))
		check(err)
	}
	for _, name := range names {
		if base := filepath.Base(name); strings.HasSuffix(base, ".yaml") {
			var out strings.Builder
			check(t.ExecuteTemplate(&out, base, data))
			printDocuments(out.String())
		}
	}
}
