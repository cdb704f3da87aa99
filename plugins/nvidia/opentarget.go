// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"context"

	"github.com/unwindd/unwindd/plugins/nvidia/cudacore"
	"github.com/unwindd/unwindd/sdk"
)

// coreMachine has the numbers of this architecture for what cores have.
func coreMachine() *cudacore.Machine {
	return &cudacore.Machine{
		PC: pc, ErrorPC: errorPC, CC: cc, RPC: rpc0, Lanes: active,
		General:           cudacore.RegisterRange{First: r0, Count: rz - r0},
		Predicates:        cudacore.RegisterRange{First: predicate, Count: 7},
		Uniform:           cudacore.RegisterRange{First: ur0, Count: urz - ur0},
		UniformPredicates: cudacore.RegisterRange{First: up0, Count: 7},
		Barriers:          cudacore.RegisterRange{First: barrier0, Count: 16},
		Local:             local, Shared: shared, Const: constant, Parameters: param,
		IsKnown: func(name string) bool { return processorNumber(name) != 0 },
	}
}

// OpenTarget reads a core of CUDA's driver.
func (architecture) OpenTarget(ctx context.Context, e sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
	if req.File == nil {
		return &sdk.OpenTargetAnswer{}, nil
	}
	return cudacore.Read(ctx, e, req.File, coreMachine())
}
