// SPDX-License-Identifier: Apache-2.0
// Render manifests/chart without Helm, which Debian 12 does not have: what Helm itself is made of (text/template, sprig,
// sigs.k8s.io/yaml), with the functions and objects that the chart uses. Values are merged as Helm merges them; missing
// keys are empty, as there; values are held against values.schema.json, as far as keywords of it are known here (others are
// refused). Prints one JSON document per line.
//
//	helm_render CHART RELEASE_NAMESPACE [API_VERSION,...] [FLAG...]
//	helm_render - <YAML      documents of another origin in the same form, to compare with
//
//	--set=KEY=VALUE    as in Helm; VALUE may be {a,b} or null
//	--values=FILE
//	--reuse-values=FILE    in place of the chart's own values: those of the release that is upgraded, defaults of its chart included
//	--objects=FILE     a JSON list of objects of the cluster, for lookup
//	--release=NAME     (default orbweaver)
//	--upgrade          the release exists
//	--notes            print NOTES.txt, nothing else
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
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
	values[keys[len(keys)-1]] = typed(text)
}

func typed(text string) interface{} {
	var value interface{} = text
	if text == "null" {
		return nil
	}
	if strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") {
		list := []interface{}{}
		for _, item := range strings.Split(text[1:len(text)-1], ",") {
			list = append(list, typed(item))
		}
		return list
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		value = n
	} else if b, err := strconv.ParseBool(text); err == nil {
		value = b
	}
	return value
}

// ---- the schema ---------------------------------------------------------------------------------------------------------

func isType(value interface{}, name string) bool {
	switch v := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case int64:
		return name == "integer" || name == "number"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case []interface{}:
		return name == "array"
	case map[string]interface{}:
		return name == "object"
	}
	return false
}

func number(value interface{}) (float64, bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// The words of a keyword that has one or a list of them.
func words(value interface{}) []string {
	list, isList := value.([]interface{})
	if !isList {
		list = []interface{}{value}
	}
	var ret []string
	for _, word := range list {
		ret = append(ret, word.(string))
	}
	return ret
}

func within(list []string, accept func(string) bool) bool {
	for _, word := range list {
		if accept(word) {
			return true
		}
	}
	return false
}

// What is wrong with the value, one line each: "a.b: must be boolean".
func faults(where string, value interface{}, schema map[string]interface{}) (ret []string) {
	say := func(format string, args ...interface{}) {
		ret = append(ret, strings.TrimPrefix(where, ".")+": "+fmt.Sprintf(format, args...))
	}
	if types, has := schema["type"]; has && !within(words(types), func(t string) bool { return isType(value, t) }) {
		say("must be %s, is %v", strings.Join(words(types), " or "), value)
		return
	}
	for key, rule := range schema {
		switch key {
		case "type", "$schema", "title", "properties":
		case "enum":
			if !within(words(rule), func(word string) bool { return value == word }) {
				say("must be one of %s, is %v", strings.Join(words(rule), ", "), value)
			}
		case "pattern":
			if text, is := value.(string); is && !regexp.MustCompile(rule.(string)).MatchString(text) {
				say("must match %s, is %v", rule, value)
			}
		case "minimum", "maximum":
			limit, _ := number(rule)
			if n, is := number(value); is && (key == "minimum" && n < limit || key == "maximum" && n > limit) {
				say("%s is %v, is %v", key, limit, n)
			}
		case "items":
			list, _ := value.([]interface{})
			for i, item := range list {
				ret = append(ret, faults(fmt.Sprintf("%s.%d", where, i), item, rule.(map[string]interface{}))...)
			}
		case "additionalProperties":
			object, _ := value.(map[string]interface{})
			known, _ := schema["properties"].(map[string]interface{})
			for name, member := range object {
				if _, is := known[name]; !is {
					ret = append(ret, faults(where+"."+name, member, rule.(map[string]interface{}))...)
				}
			}
		default:
			say("keyword %s of the schema is not known here", key)
		}
	}
	object, _ := value.(map[string]interface{})
	properties, _ := schema["properties"].(map[string]interface{})
	for name, rule := range properties {
		if member, is := object[name]; is {
			ret = append(ret, faults(where+"."+name, member, rule.(map[string]interface{}))...)
		}
	}
	return
}

func checkValues(chart string, values map[string]interface{}) {
	wrong := faults("", values, load(filepath.Join(chart, "values.schema.json")))
	if len(wrong) > 0 {
		sort.Strings(wrong)
		check(fmt.Errorf("values: %s", strings.Join(wrong, "; ")))
	}
}

// ---- templates ----------------------------------------------------------------------------------------------------------

// An object of the cluster; empty when it is not there.
func lookup(objects []map[string]interface{}) interface{} {
	return func(apiVersion, kind, namespace, name string) map[string]interface{} {
		for _, object := range objects {
			meta, _ := object["metadata"].(map[string]interface{})
			if object["apiVersion"] == apiVersion && object["kind"] == kind && meta["namespace"] == namespace && meta["name"] == name {
				return object
			}
		}
		return map[string]interface{}{}
	}
}

func functions(t *template.Template, objects []map[string]interface{}) template.FuncMap {
	f := sprig.TxtFuncMap()
	f["lookup"] = lookup(objects)
	f["fromYaml"] = func(text string) map[string]interface{} {
		object := map[string]interface{}{}
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			object["Error"] = err.Error()
		}
		return object
	}
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
	objects := []map[string]interface{}{}
	release := map[string]interface{}{"Name": "orbweaver", "Namespace": namespace, "IsUpgrade": false, "IsInstall": true}
	onlyNotes := false
	for _, arg := range os.Args[3:] {
		switch {
		case strings.HasPrefix(arg, "--set="):
			set(values, strings.TrimPrefix(arg, "--set="))
		case strings.HasPrefix(arg, "--values="):
			merge(values, load(strings.TrimPrefix(arg, "--values=")))
		case strings.HasPrefix(arg, "--reuse-values="):
			values = load(strings.TrimPrefix(arg, "--reuse-values="))
		case strings.HasPrefix(arg, "--objects="):
			data, err := os.ReadFile(strings.TrimPrefix(arg, "--objects="))
			check(err)
			check(json.Unmarshal(data, &objects))
		case strings.HasPrefix(arg, "--release="):
			release["Name"] = strings.TrimPrefix(arg, "--release=")
		case arg == "--upgrade":
			release["IsUpgrade"], release["IsInstall"] = true, false
		case arg == "--notes":
			onlyNotes = true
		case strings.HasPrefix(arg, "--"):
			check(fmt.Errorf("unknown flag %q", arg))
		default:
			apis = strings.Split(arg, ",")
		}
	}
	checkValues(chart, values)
	meta := load(filepath.Join(chart, "Chart.yaml"))
	data := map[string]interface{}{
		"Values":       values,
		"Chart":        map[string]interface{}{"Name": meta["name"], "Version": meta["version"], "AppVersion": meta["appVersion"]},
		"Release":      release,
		"Capabilities": map[string]interface{}{"APIVersions": apis},
		"Files":        files(chart),
	}
	t := template.New("chart").Option("missingkey=zero")
	t.Funcs(functions(t, objects))
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
		if base := filepath.Base(name); onlyNotes && base == "NOTES.txt" {
			check(t.ExecuteTemplate(os.Stdout, base, data))
		} else if !onlyNotes && strings.HasSuffix(base, ".yaml") {
			var out strings.Builder
			check(t.ExecuteTemplate(&out, base, data))
			printDocuments(out.String())
		}
	}
}
