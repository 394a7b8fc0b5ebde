#include "lathe/hardware/design_file.h"

#include <nlohmann/json.hpp>

#include "lathe/core/error.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/json_file.h"
#include "lathe/io/mapped_file.h"
#include "lathe/io/safetensors.h"

namespace lathe::hardware {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kFormat = "lathe-design";
constexpr int kVersion = 1;

Json to_json(const Stream& stream) {
  return {{"width", stream.element.width},
          {"signed", stream.element.is_signed},
          {"meaning", stream.element.meaning},
          {"lanes", stream.lanes},
          {"size", stream.size},
          {"vectors", stream.vectors}};
}

Stream stream_of(const nlohmann::json& json) {
  return {.element = {.width = json.at("width"),
                      .is_signed = json.at("signed"),
                      .meaning = json.at("meaning")},
          .lanes = json.at("lanes"),
          .size = json.at("size"),
          .vectors = json.at("vectors")};
}

Json to_json(const DesignPort& port) {
  return {{"name", port.name},
          {"node", port.node},
          {"dims", port.dims},
          {"order", port.order},
          {"width", port.range.width},
          {"signed", port.range.is_signed},
          {"symmetric", port.range.is_symmetric},
          {"scale", port.scale},
          {"is_length", port.is_length}};
}

DesignPort port_of(const nlohmann::json& json) {
  return {.name = json.at("name"),
          .node = json.at("node"),
          .dims = json.at("dims"),
          .order = json.at("order"),
          .range = {.width = json.at("width"),
                    .is_signed = json.at("signed"),
                    .is_symmetric = json.at("symmetric")},
          .scale = json.at("scale"),
          .is_length = json.at("is_length")};
}

Json to_json(const ExternalLayer& layer) {
  return {{"layer", layer.layer},     {"module", layer.module},       {"stages", layer.stages},
          {"y", layer.result},        {"registers", layer.registers}, {"next", layer.next},
          {"library", layer.library}, {"function", layer.function}};
}

ExternalLayer external_of(const nlohmann::json& json, const std::filesystem::path& folder) {
  ExternalLayer layer{.layer = json.at("layer"),
                      .module = json.at("module"),
                      .source = {},
                      .stages = json.at("stages"),
                      .result = json.at("y"),
                      .library = json.at("library"),
                      .function = json.at("function")};
  for (const auto& [name, value] : json.at("registers").items()) layer.registers[name] = value;
  for (const auto& [name, value] : json.at("next").items()) layer.next[name] = value;
  layer.source = io::MappedFile::open((folder / "rtl" / (layer.module + ".sv")).string())->text();
  return layer;
}

Json netlist_json(const Netlist& netlist, State& tables) {
  Json json{{"name", netlist.name}, {"inputs", Json::array()}, {"instances", Json::array()}};
  for (const StreamId stream : netlist.inputs()) {
    Json input = to_json(netlist.type(stream));
    input["name"] = netlist.stream_name(stream);
    json["inputs"].push_back(std::move(input));
  }
  for (const Instance& instance : netlist.instances()) {
    Json list = Json::array(), meanings = Json::array(), sources = Json::array();
    for (const auto& [name, values] : instance.tables) {
      list.push_back(name);
      tables[instance.name + "/" + name] =
          Tensor::from<std::int64_t>({std::ssize(values)}, std::span<const std::int64_t>(values));
    }
    for (const StreamId stream : instance.outputs)
      meanings.push_back(netlist.type(stream).element.meaning);
    for (const StreamId stream : instance.inputs) sources.push_back(netlist.stream_name(stream));
    json["instances"].push_back({{"name", instance.name},
                                 {"block", instance.block},
                                 {"parameters", instance.parameters},
                                 {"tables", list},
                                 {"reads", sources},
                                 {"meanings", meanings},
                                 {"note", instance.note}});
  }
  Json outputs = Json::array();
  for (const StreamId stream : netlist.outputs()) outputs.push_back(netlist.stream_name(stream));
  json["outputs"] = std::move(outputs);
  return json;
}

void read_netlist(Netlist& netlist, const nlohmann::json& json, const io::SafetensorsFile& tables) {
  const auto stream_named = [&](const std::string& name) {
    for (StreamId stream = 0; stream < netlist.streams().size(); ++stream)
      if (netlist.stream_name(stream) == name) return stream;
    fail("there is no stream \"{}\"", name);
  };
  for (const nlohmann::json& input : json.at("inputs"))
    netlist.add_input(input.at("name"), stream_of(input));
  for (const nlohmann::json& each : json.at("instances")) {
    Instance instance{.name = each.at("name"), .block = each.at("block"), .note = each.at("note")};
    for (const auto& [name, value] : each.at("parameters").items())
      instance.parameters[name] = value;
    for (const std::string name : each.at("tables")) {
      const Tensor table = tables.tensor(instance.name + "/" + name);
      if (table.dtype() != DType::I64) fail("table \"{}/{}\" is not of i64", instance.name, name);
      const auto values = table.data<std::int64_t>();
      instance.tables[name] = Values(values.begin(), values.end());
    }
    for (const std::string name : each.at("reads")) instance.inputs.push_back(stream_named(name));
    const std::vector<StreamId> written = netlist.add(std::move(instance));
    for (std::size_t i = 0; i < written.size(); ++i)
      netlist.set_meaning(written[i], each.at("meanings").at(i));
  }
  for (const std::string name : json.at("outputs")) netlist.add_output(stream_named(name));
}

}  // namespace

void write_design(const Design& design, const std::filesystem::path& folder) {
  write(emit(design.netlist), folder);
  State tables;
  Json json{{"format", kFormat},
            {"version", kVersion},
            {"parallelism", to_text(design.parallelism)},
            {"cycles", design.frame_interval},
            {"latency", design.latency},
            {"symbols", design.symbols},
            {"dsp", design.resources.dsp},
            {"bram18", design.resources.bram18},
            {"lut", design.resources.lut},
            {"inputs", Json::array()},
            {"outputs", Json::array()},
            {"external", Json::array()}};
  for (const DesignPort& port : design.inputs) json["inputs"].push_back(to_json(port));
  for (const DesignPort& port : design.outputs) json["outputs"].push_back(to_json(port));
  for (const ExternalLayer& layer : design.external) json["external"].push_back(to_json(layer));
  json["netlist"] = netlist_json(design.netlist, tables);
  io::write_safetensors(folder / "tables.safetensors", tables);
  io::write_atomically(folder / "design.json", json.dump(1) + "\n");
}

Design read_design(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "design.json";
  if (!std::filesystem::exists(path))
    throw UserError(fmt::format("{}: is no design", folder.string()),
                    "lathe emit --model M --out DIR makes one");
  const nlohmann::json json = io::read_json(path);
  return with_place(path.string(), [&] {
    try {
      if (json.value("format", "") != kFormat) fail("is no design");
      if (json.at("version") != kVersion)
        fail("version {}, and expected {}", json.at("version").dump(), kVersion);
      Design design{.netlist = Netlist(json.at("netlist").at("name").get<std::string>())};
      for (const nlohmann::json& port : json.at("inputs")) design.inputs.push_back(port_of(port));
      for (const nlohmann::json& port : json.at("outputs")) design.outputs.push_back(port_of(port));
      for (const nlohmann::json& layer : json.at("external"))
        design.external.push_back(external_of(layer, folder));
      for (const ExternalLayer& layer : design.external)
        if (!design.netlist.own_blocks().contains(layer.module))
          design.netlist.define(external_block(layer));
      std::string list = json.at("parallelism");
      while (!list.empty()) {
        const std::size_t end = std::min(list.find(','), list.size());
        add_parallelism(design.parallelism, list.substr(0, end));
        list.erase(0, end + 1);
      }
      design.frame_interval = json.at("cycles");
      design.latency = json.at("latency");
      for (const auto& [symbol, value] : json.at("symbols").items()) design.symbols[symbol] = value;
      design.resources = {
          .dsp = json.at("dsp"), .bram18 = json.at("bram18"), .lut = json.at("lut")};
      read_netlist(design.netlist, json.at("netlist"),
                   io::SafetensorsFile::open(folder / "tables.safetensors"));
      return design;
    } catch (const nlohmann::json::exception& error) {
      throw UserError(describe_json_problem(error));
    }
  });
}

Emission read_emission(const Design& design, const std::filesystem::path& folder) {
  Emission emission = emit(design.netlist);
  for (auto& [path, text] : emission.files)
    text = std::string(io::MappedFile::open((folder / path).string())->text());
  return emission;
}

}  // namespace lathe::hardware
