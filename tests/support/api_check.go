// What a Kubernetes 0.36 API server says of manifests and of custom objects, without a server: its own packages, which
// hack/apiextensions-build compiles this with. MANIFESTS are YAML, requests and answers one JSON document a line.
//
//	api-check MANIFESTS [REQUESTS]
//
// MANIFESTS: each is decoded into the type that Kubernetes has for its kind, where unknown and repeated fields are errors.
// Of definitions all is checked that the server checks, cost of rules included; expressions of admission policies are
// compiled. What is wrong: {"manifest": "KIND/NAME", "error": TEXT}. {"manifest": "KIND/NAME", "unknown": true}: a kind of others.
//
// REQUESTS: {"id", "kind", "object", "old"}: may the object be stored, as new or in place of the old one?
// {"id", "causes": [{"field", "message"}]}.
package main

import (
	"bufio"
	"bytes"
	"context"
	encoding "encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	definitions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definition "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/kubernetes/scheme"
)

// A kind of which objects can be judged.
type kind struct {
	schema   *schema.Structural
	strategy interface {
		Validate(context.Context, runtime.Object) field.ErrorList
		ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList
	}
}

type request struct {
	ID     string                 `json:"id"`
	Kind   string                 `json:"kind"`
	Object map[string]interface{} `json:"object"`
	Old    map[string]interface{} `json:"old"`
}

type cause struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

var out = encoding.NewEncoder(os.Stdout)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "api-check:", err)
		os.Exit(1)
	}
}

func readAll(path string, read func(*os.File) error) {
	file, err := os.Open(path)
	check(err)
	defer file.Close()
	if err := read(file); err != io.EOF {
		check(err)
	}
}

func documents(path string, do func([]byte)) {
	readAll(path, func(file *os.File) error {
		reader := yaml.NewYAMLReader(bufio.NewReader(file))
		for {
			text, err := reader.Read()
			if err != nil {
				return err
			}
			if len(bytes.TrimSpace(text)) > 0 {
				do(text)
			}
		}
	})
}

func lines(path string, do func([]byte)) {
	readAll(path, func(file *os.File) error {
		scanner := bufio.NewScanner(file)
		scanner.Buffer(nil, 16<<20)
		for scanner.Scan() {
			do(scanner.Bytes())
		}
		return scanner.Err()
	})
}

// ---- definitions

func newKind(crd *apiextensions.CustomResourceDefinition) kind {
	version := crd.Spec.Versions[0]
	props := crd.Spec.Validation
	if props == nil {
		props = version.Schema
	}
	structural, err := schema.NewStructural(props.OpenAPIV3Schema)
	check(err)
	validator, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
	check(err)
	gvk := definitions.SchemeGroupVersion.WithKind(crd.Spec.Names.Kind)
	gvk.Group, gvk.Version = crd.Spec.Group, version.Name
	return kind{
		schema: structural,
		strategy: customresource.NewStrategy(scheme.Scheme, crd.Spec.Scope == apiextensions.NamespaceScoped, gvk, validator,
			nil, structural, nil, nil, nil),
	}
}

func checkDefinition(crd *definitions.CustomResourceDefinition, kinds map[string]kind) []string {
	var internal apiextensions.CustomResourceDefinition
	var wrong []string

	scheme.Scheme.Default(crd)
	check(scheme.Scheme.Convert(crd, &internal, nil))
	internal.Status.StoredVersions = []string{internal.Spec.Versions[0].Name}
	for _, err := range definition.ValidateCustomResourceDefinition(context.TODO(), &internal) {
		wrong = append(wrong, err.Error())
	}
	if wrong == nil {
		kinds[crd.Spec.Names.Kind] = newKind(&internal)
	}
	return wrong
}

// ---- admission policies

type compiler struct {
	*cel.CompositedCompiler
	options cel.OptionalVariableDeclarations
	wrong   []string
}

func newCompiler(params bool) *compiler {
	composited, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	check(err)
	return &compiler{composited, cel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}, nil}
}

func (c *compiler) add(what string, errs []error) {
	for _, err := range errs {
		c.wrong = append(c.wrong, what+": "+err.Error())
	}
}

func (c *compiler) variable(v admission.Variable) {
	result := c.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, c.options,
		environment.NewExpressions)
	if result.Error != nil {
		c.add("variable "+v.Name, []error{result.Error})
	}
}

func (c *compiler) condition(what string, accessor cel.ExpressionAccessor) {
	c.add(what, c.CompileCondition([]cel.ExpressionAccessor{accessor}, c.options, environment.NewExpressions).CompilationErrors())
}

func (c *compiler) matches(conditions []admission.MatchCondition) {
	for _, m := range conditions {
		c.condition("matchCondition "+m.Name, &validating.ValidationCondition{Expression: m.Expression})
	}
}

func (c *compiler) mutation(m admission.Mutation) {
	var accessor cel.ExpressionAccessor

	if m.PatchType == admission.PatchTypeJSONPatch {
		accessor = &patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}
	} else {
		accessor = &patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}
	}
	options := c.options
	options.HasPatchTypes = true
	c.add("mutation", c.CompileMutatingEvaluator(accessor, options, environment.NewExpressions).CompilationErrors())
}

func checkValidating(policy *admission.ValidatingAdmissionPolicy) []string {
	c := newCompiler(policy.Spec.ParamKind != nil)
	for _, v := range policy.Spec.Variables {
		c.variable(v)
	}
	c.matches(policy.Spec.MatchConditions)
	for _, v := range policy.Spec.Validations {
		c.condition("validation", &validating.ValidationCondition{Expression: v.Expression})
		if v.MessageExpression != "" {
			c.condition("messageExpression", &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
		}
	}
	return c.wrong
}

func checkMutating(policy *admission.MutatingAdmissionPolicy) []string {
	c := newCompiler(policy.Spec.ParamKind != nil)
	for _, v := range policy.Spec.Variables {
		c.variable(v)
	}
	c.matches(policy.Spec.MatchConditions)
	for _, m := range policy.Spec.Mutations {
		c.mutation(m)
	}
	return c.wrong
}

// ---- manifests and requests

func checkManifest(text []byte, kinds map[string]kind) {
	codec := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	object, gvk, err := codec.Decode(text, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		check(out.Encode(map[string]interface{}{"manifest": gvk.Kind, "unknown": true}))
		return
	}
	var wrong []string
	if err != nil {
		wrong = strings.Split(err.Error(), "\n")
	}
	name := "?"
	if object != nil {
		accessor, err := meta.Accessor(object)
		check(err)
		name = gvk.Kind + "/" + accessor.GetName()
	}
	switch typed := object.(type) {
	case *definitions.CustomResourceDefinition:
		wrong = append(wrong, checkDefinition(typed, kinds)...)
	case *admission.ValidatingAdmissionPolicy:
		wrong = append(wrong, checkValidating(typed)...)
	case *admission.MutatingAdmissionPolicy:
		wrong = append(wrong, checkMutating(typed)...)
	}
	for _, text := range wrong {
		check(out.Encode(map[string]string{"manifest": name, "error": text}))
	}
}

// As the server makes it of what came: without unknown fields, with defaults.
func (k kind) object(content map[string]interface{}) *unstructured.Unstructured {
	text, err := encoding.Marshal(content)
	check(err)
	object := &unstructured.Unstructured{}
	check(object.UnmarshalJSON(text))
	pruning.Prune(object.Object, k.schema, true)
	defaulting.Default(object.Object, k.schema)
	return object
}

func judge(text []byte, kinds map[string]kind) {
	var r request
	var errs field.ErrorList

	check(encoding.Unmarshal(text, &r))
	k, known := kinds[r.Kind]
	if !known {
		check(fmt.Errorf("no definition of kind %q", r.Kind))
	}
	object := k.object(r.Object)
	if r.Old != nil {
		old := k.object(r.Old)
		old.SetResourceVersion("1")
		object.SetResourceVersion("1")
		errs = k.strategy.ValidateUpdate(context.TODO(), object, old)
	} else {
		errs = k.strategy.Validate(context.TODO(), object)
	}
	causes := []cause{}
	for _, err := range errs {
		causes = append(causes, cause{err.Field, err.ErrorBody()})
	}
	check(out.Encode(map[string]interface{}{"id": r.ID, "causes": causes}))
}

func main() {
	kinds := map[string]kind{}

	install.Install(scheme.Scheme)
	if len(os.Args) < 2 {
		check(fmt.Errorf("usage: api-check MANIFESTS [REQUESTS]"))
	}
	documents(os.Args[1], func(text []byte) { checkManifest(text, kinds) })
	if len(os.Args) > 2 {
		lines(os.Args[2], func(text []byte) { judge(text, kinds) })
	}
}
