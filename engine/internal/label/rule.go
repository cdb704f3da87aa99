// SPDX-License-Identifier: Apache-2.0

package label

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/target"
)

// Rule makes a label of what an expression finds.
type Rule struct {
	name       string
	expression *regexp.Regexp
}

// maxExpression bounds the bytes of an expression.
const maxExpression = 4 << 10

// ParseRule parses NAME=REGEX.
func ParseRule(text string) (Rule, error) {
	name, expression, ok := strings.Cut(text, "=")
	switch {
	case !ok:
		return Rule{}, fmt.Errorf("%q has no =: expected NAME=REGEX, such as %s", text, `rank=rank(\d+)`)
	case !target.IsLabelName(name):
		return Rule{}, fmt.Errorf("%q is no name of a label: expected a letter or _, and letters, digits and any of _.- after it, at most %d", name, target.MaxLabelName)
	case expression == "":
		return Rule{}, fmt.Errorf("label %s has no expression: expected NAME=REGEX, such as %s", name, `rank=rank(\d+)`)
	case len(expression) > maxExpression:
		return Rule{}, fmt.Errorf("label %s: its expression has %d bytes, expected at most %d", name, len(expression), maxExpression)
	}
	e, err := regexp.Compile(expression)
	if err != nil {
		return Rule{}, fmt.Errorf("label %s: %w", name, err)
	}
	return Rule{name, e}, nil
}

// Name returns the name of the label.
func (r *Rule) Name() string { return r.name }

// match finds the expression in the path, then in the command line, then in each variable. The value is the
// first group's, where the expression has one, and not empty.
func (r *Rule) match(path, command string, environment []string) (value string, ok bool) {
	for _, text := range slices.Concat([]string{path, command}, environment) {
		found := r.expression.FindStringSubmatch(text)
		if len(found) == 0 {
			continue
		}
		if value = found[min(1, len(found)-1)]; value != "" {
			return value, true
		}
	}
	return "", false
}
