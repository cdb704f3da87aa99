// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/sdk"
)

// engine is the process as the plugin of a runtime sees it.
type engine struct {
	sdk.Engine
	process *walk.Process
}

// FindFunctions returns the functions at addresses, by the names of the modules that have them.
func (e *engine) FindFunctions(ctx context.Context, addresses []uint64) ([]sdk.FunctionPlace, error) {
	if len(addresses) > sdk.MaxFindFunctions {
		return nil, fmt.Errorf("%d addresses, expected at most %d", len(addresses), sdk.MaxFindFunctions)
	}
	list := make([]sdk.FunctionPlace, len(addresses))
	for i, address := range addresses {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// Functions of a file that is cut are not known.
		_ = object.Guard(func() error {
			list[i] = functionAt(ctx, e.process, address)
			return nil
		})
	}
	return list, nil
}

// functionAt returns the function at an address.
func functionAt(ctx context.Context, p *walk.Process, address uint64) (f sdk.FunctionPlace) {
	s := p.Segment(address)
	if s == nil {
		return f
	}
	within := s.ObjectAddress(address)
	frames := s.Module.AllNames(ctx, within, true)
	if len(frames) == 0 {
		return f
	}
	last := &frames[len(frames)-1]
	if f.Name = last.LinkageName; f.Name == "" {
		f.Name = last.Function
	}
	f.Name = symbol.StripVersion(f.Name)
	if at := s.Module.Code.Offset(within); last.HasStart && last.Start <= at {
		f.Start, f.HasStart = address-(at-last.Start), true
	}
	return f
}
