// SPDX-License-Identifier: Apache-2.0

package engine

// LabelRule makes a label of a target: of its path, its command line or a variable of its environment.
type LabelRule struct{}

// ParseLabelRule parses NAME=REGEX. The value of the label is the first group of the expression where it
// has one, else the whole match. It is matched with the path, then with the command line, then with each
// VARIABLE=VALUE of the environment.
func ParseLabelRule(text string) (LabelRule, error) { panic("contract") }
