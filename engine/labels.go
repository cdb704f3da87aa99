// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"

	"github.com/unwindd/unwindd/engine/internal/label"
	"github.com/unwindd/unwindd/engine/target"
)

// LabelRule makes a label of a target: of its path, its command line or a variable of its environment.
type LabelRule struct{ rule label.Rule }

// ParseLabelRule parses NAME=REGEX. The value of the label is the first group of the expression where it
// has one, else the whole match. It is matched with the path, then with the command line, then with each
// VARIABLE=VALUE of the environment. NAME is a letter or _ and at most 63 further letters, digits, and _.-; REGEX
// is as Go's regexp package has it, of at most 4 KiB.
func ParseLabelRule(text string) (LabelRule, error) {
	rule, err := label.ParseRule(text)
	return LabelRule{rule}, err
}

// Labels returns labels of the target's process: by rules, then its own, which a snapshot has, then rank, local_rank,
// world_size, host, pod, job, devices and others where variables that launchers are known to set tell them. The
// map is the caller's.
func (t *Target) Labels(rules []LabelRule) map[string]string {
	info := t.Info()
	s := label.Start{Path: info.Path}
	if f := info.Facts; f != nil {
		s.Own, s.Host, s.Command = f.Process.Labels, f.Process.Host, strings.Fields(f.Process.Command)
		for _, a := range f.Annotations {
			if a.Module == "" {
				s.Environment = append(s.Environment, a.Name+"="+a.Value)
			}
		}
	}
	if k, ok := t.process.State().(target.WithStart); ok {
		start := k.Start()
		s.Environment = append(start.Environment, s.Environment...)
		s.Cgroup = start.Cgroup
		if len(start.Command) > 0 {
			s.Command = start.Command
		}
	}
	list := make([]label.Rule, len(rules))
	for i := range rules {
		list[i] = rules[i].rule
	}
	return label.Of(&s, list)
}
