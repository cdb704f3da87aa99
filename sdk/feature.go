// SPDX-License-Identifier: Apache-2.0

package sdk

import "context"

// engineFeature is the key under which the context of Describe has the engine's number.
type engineFeature struct{}

// EngineFeature returns the number of the features that the engine knows, by the context of
// a call of Describe; 0 for an engine that is older than the number. A newer engine has a
// higher number than Feature. In the engine's own process the number is Feature.
func EngineFeature(ctx context.Context) uint32 {
	if feature, isRemote := ctx.Value(engineFeature{}).(uint32); isRemote {
		return feature
	}
	return Feature
}
