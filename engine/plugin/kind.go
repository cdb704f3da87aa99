// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/unwindd/unwindd/sdk"
)

// peer is a plugin to which calls can be made. A process serves one of the two services; a
// plugin in this process has one of the two.
type peer struct {
	arch    sdk.Architecture
	runtime sdk.Runtime
}

// withBase returns the architecture, with the answers of sdk.Base for calls that its plugin
// does not serve.
func (p peer) withBase(d *sdk.Description) sdk.Architecture { return sdk.WithBase(p.arch, d) }

// description is a description of a plugin: a *sdk.Description or a *sdk.RuntimeDescription.
type description interface{ Validate() error }

// found is a plugin that is described: of an architecture or of a language runtime.
type found struct {
	arch    *Arch
	runtime *Runtime
}

// check validates the description.
func (f found) check() error {
	if f.arch != nil {
		return f.arch.check()
	}
	return f.runtime.check()
}

// kind has the differences between plugins of architectures and of runtimes.
type kind struct {
	prefix string // of the names of vendors' executables
	suffix string // of cached descriptions
	// describe asks for the description, and validates it.
	describe func(context.Context, peer) (description, error)
	decode   func(cached []byte) (description, error)
	use      func(caller, description) found
}

var architectures = &kind{
	prefix: sdk.ExecutablePrefix,
	describe: func(ctx context.Context, p peer) (description, error) {
		return describe(ctx, p.arch.Describe)
	},
	decode: func(cached []byte) (description, error) {
		d := &sdk.Description{}
		return d, json.Unmarshal(cached, d)
	},
	use: func(c caller, d description) found { return found{arch: &Arch{caller: c, desc: d.(*sdk.Description)}} },
}

var runtimes = &kind{
	prefix: sdk.RuntimePrefix,
	suffix: ".runtime",
	describe: func(ctx context.Context, p peer) (description, error) {
		return describe(ctx, p.runtime.Describe)
	},
	decode: func(cached []byte) (description, error) {
		d := &sdk.RuntimeDescription{}
		return d, json.Unmarshal(cached, d)
	},
	use: func(c caller, d description) found {
		return found{runtime: &Runtime{caller: c, desc: d.(*sdk.RuntimeDescription)}}
	},
}

// describe asks for a description and validates it.
func describe[D any, P interface {
	*D
	description
}](ctx context.Context, call func(context.Context) (P, error),
) (description, error) {
	d, err := call(ctx)
	switch {
	case errors.Is(err, sdk.ErrMalformed):
		return nil, &nonsense{err}
	case err != nil:
		return nil, err
	case d == nil:
		return nil, &nonsense{errors.New("no description and no error")}
	}
	if err := d.Validate(); err != nil {
		return nil, &nonsense{err}
	}
	return d, nil
}
