// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// .ze_info describes the kernels in a zebin, in YAML that Intel's compilers
// write themselves: a version, a list of kernels, and one of functions that
// kernels call through pointers or as externals.
const (
	zeInfoSection = ".ze_info"
	zeInfoMajor   = "1" // of the version
	zeCodePrefix  = ".text."
)

// Bounds on .ze_info. A kernel with ten arguments has 2 kB of it.
const (
	maxZeInfo    = 4 << 20 // bytes
	maxZeKernels = 1 << 16
)

// zeInfo is the part of .ze_info that stacks need.
type zeInfo struct {
	kernels   []zeKernel
	functions []zeKernel // called, not launched
}

// zeKernel is a kernel or function of .ze_info. Absent numbers are 0.
type zeKernel struct {
	name          string
	lanes         uint32 // simd_size: channels of a hardware thread
	registers     uint32 // grf_count
	slm           uint64 // slm_size: bytes of shared local memory of a work-group
	scratch       uint64 // bytes of the scratch space of a hardware thread, all slots
	hasStackCalls bool   // has_stack_calls: there is a stack, and calls that put frames on it
}

// kernelOf returns the kernel whose code is in a section, or nil.
func (z *zeInfo) kernelOf(section string) *zeKernel {
	name, ok := strings.CutPrefix(section, zeCodePrefix)
	for i := range z.kernels {
		if ok && z.kernels[i].name == name {
			return &z.kernels[i]
		}
	}
	return nil
}

// readZeInfo reads .ze_info. Unknown members are ignored; a known one of
// another type is an error.
func readZeInfo(data []byte) (z *zeInfo, err error) {
	if len(data) > maxZeInfo {
		return nil, fmt.Errorf("%s: %d bytes, expected at most %d", zeInfoSection, len(data), maxZeInfo)
	}
	root, err := parseYAML(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", zeInfoSection, err)
	}
	z = &zeInfo{}
	version := ""
	err = members(root, map[string]func(*yaml.Node) error{
		"version":   func(n *yaml.Node) error { return scalar(n, &version) },
		"kernels":   func(n *yaml.Node) (err error) { z.kernels, err = zeKernels(n); return err },
		"functions": func(n *yaml.Node) (err error) { z.functions, err = zeKernels(n); return err },
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", zeInfoSection, err)
	}
	if major, _, _ := strings.Cut(version, "."); major != zeInfoMajor {
		return nil, fmt.Errorf("%s: version %.32q, expected %s", zeInfoSection, version, zeInfoMajor)
	}
	return z, nil
}

// parseYAML returns the tree of the first document. An alias stays an alias,
// which is not followed.
func parseYAML(data []byte) (root *yaml.Node, err error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return nil, errors.New("no YAML document")
	}
	return document.Content[0], nil
}

// zeKernels reads a list of kernels or functions.
func zeKernels(n *yaml.Node) (list []zeKernel, err error) {
	err = elements(n, func(n *yaml.Node) error {
		if len(list) == maxZeKernels {
			return malformed(n, "more than %d kernels", maxZeKernels)
		}
		var k zeKernel
		err := members(n, map[string]func(*yaml.Node) error{
			"name": func(n *yaml.Node) error { return scalar(n, &k.name) },
			"execution_env": func(n *yaml.Node) error {
				return members(n, map[string]func(*yaml.Node) error{
					"simd_size":       func(n *yaml.Node) (err error) { k.lanes, err = number[uint32](n, 32); return err },
					"grf_count":       func(n *yaml.Node) (err error) { k.registers, err = number[uint32](n, 32); return err },
					"slm_size":        func(n *yaml.Node) (err error) { k.slm, err = number[uint64](n, 64); return err },
					"has_stack_calls": func(n *yaml.Node) (err error) { k.hasStackCalls, err = truth(n); return err },
				})
			},
			"per_thread_memory_buffers": func(n *yaml.Node) (err error) { k.scratch, err = scratchSize(n); return err },
		})
		if err == nil && k.name == "" {
			err = malformed(n, "a kernel without a name")
		}
		list = append(list, k)
		return err
	})
	return list, err
}

// scratchSize adds up the buffers of a kernel that are in its threads' scratch
// space.
func scratchSize(n *yaml.Node) (total uint64, err error) {
	err = elements(n, func(n *yaml.Node) error {
		kind, size := "", uint64(0)
		err := members(n, map[string]func(*yaml.Node) error{
			"type": func(n *yaml.Node) error { return scalar(n, &kind) },
			"size": func(n *yaml.Node) (err error) { size, err = number[uint64](n, 32); return err },
		})
		if kind == "scratch" {
			total += size // a sum of 32-bit numbers, fewer than the bytes of the file
		}
		return err
	})
	return total, err
}

// malformed returns an error at a place in the YAML.
func malformed(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...))
}

// members calls read for the members of a mapping that it has functions for. A
// member that comes twice is an error.
func members(n *yaml.Node, read map[string]func(*yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return malformed(n, "%s, expected a mapping", kindOf(n))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		f := read[name]
		if f == nil || n.Content[i].Kind != yaml.ScalarNode {
			continue
		}
		if seen[name] {
			return malformed(n.Content[i], "%s once more", name)
		}
		seen[name] = true
		if err := f(n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// elements calls read for the elements of a list. An empty list may be
// written as nothing.
func elements(n *yaml.Node, read func(*yaml.Node) error) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return malformed(n, "%s, expected a list", kindOf(n))
	}
	for _, e := range n.Content {
		if err := read(e); err != nil {
			return err
		}
	}
	return nil
}

func scalar(n *yaml.Node, to *string) error {
	if n.Kind != yaml.ScalarNode {
		return malformed(n, "%s, expected a word", kindOf(n))
	}
	*to = n.Value
	return nil
}

func number[T uint32 | uint64](n *yaml.Node, bits int) (T, error) {
	var text string
	if err := scalar(n, &text); err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(text, 0, bits)
	if err != nil {
		return 0, malformed(n, "%.32q, expected a number of at most %d bits", text, bits)
	}
	return T(v), nil
}

func truth(n *yaml.Node) (bool, error) {
	var text string
	if err := scalar(n, &text); err != nil {
		return false, err
	}
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, malformed(n, "%.32q, expected true or false", text)
}

// kindOf describes the kind of a node.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	return "a word"
}
