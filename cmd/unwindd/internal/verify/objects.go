// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// readObjects reads the samples.
func (v *verifier) readObjects() error {
	if v.kind != kinds[sdk.ExecutablePrefix] {
		return nil
	}
	d, err := v.examinee.Describe(v.ctx)
	if err != nil || d == nil || d.Validate() != nil {
		return nil //nolint:nilerr // the kit reports the error first
	}
	v.desc = d
	for i, path := range v.Objects {
		o, err := plugin.ReadObject(path, uint64(i)+1, d)
		if err != nil {
			return err
		}
		v.objects = append(v.objects, *o)
	}
	return nil
}

// maxSampleCode bounds the code in requests without an object.
const maxSampleCode = 256 << 10

// sampleCode returns code of samples: whole functions.
func sampleCode(objects []archtest.Object) (code []byte) {
	for i := range objects {
		for _, f := range objects[i].Functions {
			if len(code)+len(f.Code) <= maxSampleCode {
				code = append(code, f.Code...)
			}
		}
	}
	return code
}

// objectEngine is a target that has one code object.
type objectEngine struct {
	nothing
	object *archtest.Object
}

// ReadSection implements sdk.Engine.
func (e objectEngine) ReadSection(_ context.Context, handle uint64, name string) ([]byte, error) {
	return e.object.Read(handle, name)
}

// engineOf returns the engine for a call about a sample; nil if the plugin wants none.
func (v *verifier) engineOf(o *archtest.Object) sdk.Engine {
	if v.desc.NoEngine {
		return nil
	}
	return EngineOf(o)
}

// EngineOf returns the engine for a call about a code object: there is nothing else to read.
func EngineOf(o *archtest.Object) sdk.Engine { return objectEngine{object: o} }
