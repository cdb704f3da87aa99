// SPDX-License-Identifier: Apache-2.0

// Writes PC samples of the cubin of engine/testdata/cubin by libpcsamplingutil of CUPTI: two buffers.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cupti_pcsampling.h>
#include <cupti_pcsampling_util.h>

using namespace CUPTI::PcSamplingUtil;

int main(int, char **argv) {
  CUpti_PCSamplingStallReason stalls[3][2] = {{{5, 3}, {7, 40}}, {{6, 20}, {0, 0}}, {{5, 1}, {6, 0}}};
  struct {
    const char *function;
    uint64_t cubin, offset;
    size_t reasons;
  } places[3] = {{"grade", 0x8a7eb871, 0x90, 2}, {"repair", 0x8a7eb871, 0x180, 1}, {"other", 0x8a7eb872, 0x10, 2}};
  CUpti_PCSamplingPCData records[3] = {};
  for (int i = 0; i < 3; i++) {
    records[i].size = sizeof records[i];
    records[i].cubinCrc = places[i].cubin;
    records[i].pcOffset = places[i].offset;
    records[i].functionIndex = i + 1;
    records[i].functionName = strdup(places[i].function);
    records[i].stallReasonCount = places[i].reasons;
    records[i].stallReason = stalls[i];
    records[i].correlationId = i + 100;
  }
  CUpti_PCSamplingData data = {};
  data.size = sizeof data;
  data.collectNumPcs = data.totalNumPcs = 3;
  data.totalSamples = 70;
  data.droppedSamples = 6;
  data.pPcData = records;
  uint32_t selected[] = {5, 6, 7}, indices[] = {5, 6, 7, 8};
  CUpti_PCSamplingConfigurationInfo configuration[1] = {};
  configuration[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON;
  configuration[0].attributeData.stallReasonData.stallReasonCount = 3;
  configuration[0].attributeData.stallReasonData.pStallReasonIndex = selected;
  const char *texts[] = {"selected", "wait", "long_scoreboard", "long_scoreboard_not_issued"};
  char *names[4];
  for (int i = 0; i < 4; i++) {
    names[i] = static_cast<char *>(calloc(1, 128));
    snprintf(names[i], 128, "smsp__pcsamp_warps_issue_stalled_%s", texts[i]);
  }
  PcSamplingStallReasons reasons = {};
  reasons.numStallReasons = 4;
  reasons.stallReasons = names;
  reasons.stallReasonIndex = indices;
  CUptiUtil_PutPcSampDataParams put = {};
  put.size = CUptiUtil_PutPcSampDataParamsSize;
  put.bufferType = PC_SAMPLING_BUFFER_PC_TO_COUNTER_DATA;
  put.pSamplingData = &data;
  put.numAttributes = 1;
  put.pPCSamplingConfigurationInfo = configuration;
  put.pPcSamplingStallReasons = &reasons;
  put.fileName = argv[1];
  if (CuptiUtilPutPcSampData(&put) != CUPTI_UTIL_SUCCESS)
    return 1;
  data.totalNumPcs = 1;
  data.droppedSamples = 0;
  return CuptiUtilPutPcSampData(&put) != CUPTI_UTIL_SUCCESS;
}
