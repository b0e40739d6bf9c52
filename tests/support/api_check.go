// SPDX-License-Identifier: Apache-2.0
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
// {"id", "causes": [{"field", "message"}]}. With {"policy", "user", "node"}: may the user, with a token of the node, by this
// ValidatingAdmissionPolicy? Which kinds it is for is not looked at. {"id", "denied": [TEXT]}.
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
	gv "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	attributes "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
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

// What MANIFESTS have, by name.
type manifests struct {
	kinds    map[string]kind
	policies map[string]validating.Validator
}

type request struct {
	ID     string                 `json:"id"`
	Policy string                 `json:"policy"`
	User   string                 `json:"user"`
	Node   string                 `json:"node"`
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

// What decides by it, as the server makes it of a policy that compiles.
func newValidator(policy *admission.ValidatingAdmissionPolicy) validating.Validator {
	var validations, messages, conditions []cel.ExpressionAccessor

	c := newCompiler(policy.Spec.ParamKind != nil)
	for _, v := range policy.Spec.Variables {
		c.variable(v)
	}
	for i := range policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
	}
	for _, v := range policy.Spec.Validations {
		var message cel.ExpressionAccessor
		if v.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		messages = append(messages, message)
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message})
	}
	compiled := func(accessors []cel.ExpressionAccessor) cel.ConditionEvaluator {
		return c.CompileCondition(accessors, c.options, environment.NewExpressions)
	}
	matcher := matchconditions.NewMatcher(compiled(conditions), policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	return validating.NewValidator(compiled(validations), matcher, compiled(nil), compiled(messages), policy.Spec.FailurePolicy, nil)
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

func checkManifest(text []byte, all manifests) {
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
		wrong = append(wrong, checkDefinition(typed, all.kinds)...)
	case *admission.ValidatingAdmissionPolicy:
		wrong = append(wrong, checkValidating(typed)...)
		if wrong == nil {
			all.policies[typed.Name] = newValidator(typed)
		}
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

func toSchema(k kind, r request) map[string]interface{} {
	var errs field.ErrorList

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
	return map[string]interface{}{"id": r.ID, "causes": causes}
}

func toPolicy(policy validating.Validator, r request) map[string]interface{} {
	object := &unstructured.Unstructured{Object: r.Object}
	versioned := &attributes.VersionedAttributes{VersionedKind: object.GroupVersionKind(), VersionedObject: object}
	operation := attributes.Create
	if r.Old != nil {
		versioned.VersionedOldObject = &unstructured.Unstructured{Object: r.Old}
		operation = attributes.Update
	}
	who := &user.DefaultInfo{Name: r.User, Extra: map[string][]string{"authentication.kubernetes.io/node-name": {r.Node}}}
	resource := gv.GroupVersionResource{Group: versioned.VersionedKind.Group, Version: versioned.VersionedKind.Version,
		Resource: strings.ToLower(r.Kind) + "s"}
	versioned.Attributes = attributes.NewAttributesRecord(object, versioned.VersionedOldObject, versioned.VersionedKind,
		object.GetNamespace(), object.GetName(), resource, "", operation, nil, false, who)
	denied := []string{}
	result := policy.Validate(context.TODO(), resource, versioned, nil, nil, celconfig.RuntimeCELCostBudget, nil)
	for _, decision := range result.Decisions {
		if decision.Action == validating.ActionDeny {
			denied = append(denied, decision.Message)
		}
	}
	return map[string]interface{}{"id": r.ID, "denied": denied}
}

func judge(text []byte, all manifests) {
	var r request

	check(encoding.Unmarshal(text, &r))
	k, known := all.kinds[r.Kind]
	policy, decides := all.policies[r.Policy]
	switch {
	case decides:
		check(out.Encode(toPolicy(policy, r)))
	case r.Policy != "":
		check(fmt.Errorf("no policy %q", r.Policy))
	case known:
		check(out.Encode(toSchema(k, r)))
	default:
		check(fmt.Errorf("no definition of kind %q", r.Kind))
	}
}

func main() {
	all := manifests{map[string]kind{}, map[string]validating.Validator{}}

	install.Install(scheme.Scheme)
	if len(os.Args) < 2 {
		check(fmt.Errorf("usage: api-check MANIFESTS [REQUESTS]"))
	}
	documents(os.Args[1], func(text []byte) { checkManifest(text, all) })
	if len(os.Args) > 2 {
		lines(os.Args[2], func(text []byte) { judge(text, all) })
	}
}
