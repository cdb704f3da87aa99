// SPDX-License-Identifier: Apache-2.0

// Package bundled lists the plugins of this project, which unwindd has compiled in
// and unwindd-plugins serves.
package bundled

import (
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/cpython"
	"github.com/unwindd/unwindd/plugins/goruntime"
	"github.com/unwindd/unwindd/plugins/hotspot"
	"github.com/unwindd/unwindd/plugins/nvidia"
	"github.com/unwindd/unwindd/plugins/php"
	"github.com/unwindd/unwindd/plugins/ruby"
	"github.com/unwindd/unwindd/plugins/v8"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/plugins/x86"
	"github.com/unwindd/unwindd/plugins/x86_64"
)

// Architectures are the bundled architectures, in the order of `unwindd plugin list`.
var Architectures = []confine.Bundled{
	{Name: "x86_64", New: x86_64.New, Description: x86_64.Description},
	{Name: "i386", New: x86.New, Description: x86.Description},
	{Name: "aarch64", New: aarch64.New, Description: aarch64.Description},
	{Name: "amdgpu", New: amdgpu.New, Description: amdgpu.Description},
	{Name: "visa", New: visa.New, Description: visa.Description, Recognises: visa.Recognises, Nested: visa.Nested},
	{Name: "nvidia", New: nvidia.New, Description: nvidia.Description},
}

// Runtimes are the bundled language runtimes.
var Runtimes = []confine.BundledRuntime{
	{Name: "go", New: goruntime.New, Description: goruntime.Description},
	{Name: "cpython", New: cpython.New, Description: cpython.Description},
	{Name: "hotspot", New: hotspot.New, Description: hotspot.Description},
	{Name: "v8", New: v8.New, Description: v8.Description},
	{Name: "ruby", New: ruby.New, Description: ruby.Description},
	{Name: "php", New: php.New, Description: php.Description},
}
