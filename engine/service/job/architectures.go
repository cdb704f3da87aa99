// SPDX-License-Identifier: Apache-2.0

package job

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/unwindd/unwindd/sdk"
)

// Architectures writes the descriptions of the vendors' architectures of an engine, as JSON: a
// machine without the plugins reads the registers of its targets by them.
type Architectures struct{}

// maxArchitectures bounds the bytes of descriptions that are read.
const maxArchitectures = 64 << 20

func (*Architectures) run(r *Request) (Outcome, error) {
	list := r.Tools.Engine.Plugins().VendorDescriptions()
	return Outcome{}, json.NewEncoder(r.Report).Encode(list)
}

// ReadArchitectures reads the report of Architectures, and checks each description.
func ReadArchitectures(report io.Reader) ([]*sdk.Description, error) {
	var list []*sdk.Description
	if err := json.NewDecoder(io.LimitReader(report, maxArchitectures)).Decode(&list); err != nil {
		return nil, fmt.Errorf("descriptions of architectures: %w", err)
	}
	for i, d := range list {
		if d == nil {
			return nil, fmt.Errorf("descriptions of architectures: [%d] is null", i)
		}
		if err := d.Validate(); err != nil {
			return nil, fmt.Errorf("descriptions of architectures: [%d]: %w", i, err)
		}
	}
	return list, nil
}
