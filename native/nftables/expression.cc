#include "nftables/expression.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include <algorithm>
#include <array>

#include "nftables/datatype.h"
#include "nftables/expression_schema.h"

namespace pointsman::nftables {

namespace {

using netlink::Attribute;
using netlink::AttributeReader;
using netlink::MessageWriter;

struct VerdictWord {
  std::int32_t code;
  const char* word;
};

constexpr std::array kVerdicts{
    VerdictWord{NF_ACCEPT, "accept"}, VerdictWord{NF_DROP, "drop"}, VerdictWord{NFT_CONTINUE, "continue"},
    VerdictWord{NFT_BREAK, "break"},  VerdictWord{NFT_RETURN, "return"}, VerdictWord{NFT_JUMP, "jump"},
    VerdictWord{NFT_GOTO, "goto"},
};

// Kernel names may hold anything; what could be mistaken for another part of the text is quoted.
std::string name_text(std::string_view name) {
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.' || c == '/';
  });
  if (plain) return std::string(name);
  return "name(" + hex_text({reinterpret_cast<const std::uint8_t*>(name.data()), name.size()}) + ")";
}

void write_content(MessageWriter& writer, const Field& field) {
  writer.nest(field.attribute, [&] {
    if (const auto* verdict = std::get_if<Verdict>(&field.value)) {
      writer.nest(NFTA_DATA_VERDICT, [&] { write_verdict(writer, *verdict); });
    }
    if (const auto* bytes = std::get_if<Bytes>(&field.value)) writer.put_bytes(NFTA_DATA_VALUE, *bytes);
  });
}

void write_nest(MessageWriter& writer, std::uint16_t type, const Expression& expression);

void write_field(MessageWriter& writer, const FieldSchema& schema, const Field& field) {
  if (const auto* inner = std::get_if<std::vector<Expression>>(&field.value)) {
    for (const Expression& each : *inner) write_nest(writer, field.attribute, each);
    return;
  }
  if (const auto* text = std::get_if<std::string>(&field.value)) {
    writer.put_string(field.attribute, *text);
    return;
  }
  const auto* number = std::get_if<std::uint64_t>(&field.value);
  if (number == nullptr) {
    write_content(writer, field);
    return;
  }
  if (schema.kind == FieldKind::kU8) writer.put_u8(field.attribute, static_cast<std::uint8_t>(*number));
  if (schema.kind == FieldKind::kBe32) writer.put_be32(field.attribute, static_cast<std::uint32_t>(*number));
  if (schema.kind == FieldKind::kBe64) writer.put_be64(field.attribute, *number);
}

// Nothing for an expression without a schema, which is not written back.
void write_nest(MessageWriter& writer, std::uint16_t type, const Expression& expression) {
  const ExpressionSchema* schema = expression_schema(expression.name);
  if (schema == nullptr || expression.unknown) return;
  writer.nest(type, [&] {
    writer.put_string(NFTA_EXPR_NAME, expression.name);
    writer.nest(NFTA_EXPR_DATA, [&] {
      for (const FieldSchema& each : schema->fields) {
        for (const Field& field : expression.fields) {
          if (field.attribute == each.attribute) write_field(writer, each, field);
        }
      }
    });
  });
}

std::optional<Field> read_content(const Attribute& attribute) {
  AttributeReader reader(attribute.payload);
  const auto content = reader.next();
  if (!content || reader.next() || reader.malformed()) return std::nullopt;
  if (content->type == NFTA_DATA_VALUE) {
    return Field{attribute.type, Bytes(content->payload.begin(), content->payload.end())};
  }
  if (content->type != NFTA_DATA_VERDICT) return std::nullopt;
  auto verdict = read_verdict(content->payload);
  if (!verdict) return std::nullopt;
  return Field{attribute.type, *std::move(verdict)};
}

struct RawExpression {
  std::string name;
  ByteView content;
};

std::optional<RawExpression> read_raw(ByteView attributes) {
  RawExpression raw;
  AttributeReader reader(attributes);
  while (const auto attribute = reader.next()) {
    if (attribute->type == NFTA_EXPR_NAME) raw.name = attribute->string();
    if (attribute->type == NFTA_EXPR_DATA) raw.content = attribute->payload;
  }
  if (reader.malformed() || raw.name.empty()) return std::nullopt;
  return raw;
}

Expression expression_of(RawExpression raw);

// An expression that has one within is not taken within another: what is read never nests deeper.
std::optional<Field> read_inner(const Attribute& attribute) {
  auto raw = read_raw(attribute.payload);
  if (!raw) return std::nullopt;
  const ExpressionSchema* schema = expression_schema(raw->name);
  const auto nests = [](const FieldSchema& each) { return each.kind == FieldKind::kExpression; };
  if (schema != nullptr && std::any_of(schema->fields.begin(), schema->fields.end(), nests)) return std::nullopt;
  return Field{attribute.type, std::vector<Expression>{expression_of(*std::move(raw))}};
}

// Nothing when the attribute has another length or shape than the schema's.
std::optional<Field> read_field(const FieldSchema& schema, const Attribute& attribute) {
  const std::size_t length = attribute.payload.size();
  switch (schema.kind) {
    case FieldKind::kU8:
      if (length != 1) return std::nullopt;
      return Field{attribute.type, std::uint64_t{*attribute.u8()}};
    case FieldKind::kBe32:
      if (length != 4) return std::nullopt;
      return Field{attribute.type, std::uint64_t{*attribute.be32()}};
    case FieldKind::kBe64:
      if (length != 8) return std::nullopt;
      return Field{attribute.type, *attribute.be64()};
    case FieldKind::kString:
      return Field{attribute.type, std::string(attribute.string())};
    case FieldKind::kContent:
      return read_content(attribute);
    case FieldKind::kExpression:
      return read_inner(attribute);
  }
  return std::nullopt;
}

// False when the expression has to be kept as bytes.
bool read_fields(const ExpressionSchema& schema, ByteView attributes, std::vector<Field>& to) {
  AttributeReader reader(attributes);
  while (const auto attribute = reader.next()) {
    if (attribute->type == 0) continue;
    const FieldSchema* field_schema = schema.field(attribute->type);
    if (field_schema == nullptr) {
      // Padding before 64 bit attributes has no fixed type, and is empty.
      if (attribute->payload.empty()) continue;
      return false;
    }
    auto field = read_field(*field_schema, *attribute);
    if (!field) return false;
    to.push_back(*std::move(field));
  }
  return !reader.malformed();
}

// One that has no schema, or an attribute beyond it, is kept as bytes.
Expression expression_of(RawExpression raw) {
  Expression expression{std::move(raw.name), {}, {}};
  const ExpressionSchema* schema = expression_schema(expression.name);
  if (schema == nullptr || !read_fields(*schema, raw.content, expression.fields)) {
    expression.fields.clear();
    expression.unknown = Bytes(raw.content.begin(), raw.content.end());
  }
  return expression;
}

std::string number_text(const FieldSchema& schema, std::uint64_t number) {
  for (const ValueName& each : schema.names) {
    if (each.value == number) return std::string(each.name);
  }
  return std::to_string(number);
}

bool implied(const Expression& expression, const FieldSchema& schema, std::uint64_t number) {
  if (schema.implied == number) return true;
  return schema.implied_by != 0 && expression.number(schema.implied_by) == number;
}

std::string field_text(const Expression& expression, const FieldSchema& schema, const Field& field) {
  if (const auto* number = std::get_if<std::uint64_t>(&field.value)) {
    const std::uint64_t value = *number & ~schema.derived_bits;
    if (implied(expression, schema, value)) return "";
    return " " + std::string(schema.name) + " " + number_text(schema, value);
  }
  const std::string prefix = " " + std::string(schema.name) + " ";
  if (const auto* text = std::get_if<std::string>(&field.value)) return prefix + name_text(*text);
  if (const auto* bytes = std::get_if<Bytes>(&field.value)) return prefix + hex_text(*bytes);
  if (const auto* verdict = std::get_if<Verdict>(&field.value)) return prefix + verdict_text(*verdict);
  if (const auto* inner = std::get_if<std::vector<Expression>>(&field.value)) return prefix + expression_text(inner->front());
  return "";
}

}  // namespace

std::string verdict_text(const Verdict& verdict) {
  std::string text = "verdict " + std::to_string(verdict.code);
  for (const VerdictWord& each : kVerdicts) {
    if (each.code == verdict.code) text = each.word;
  }
  return verdict.chain.empty() ? text : text + " " + name_text(verdict.chain);
}

void write_verdict(MessageWriter& writer, const Verdict& verdict) {
  writer.put_be32(NFTA_VERDICT_CODE, static_cast<std::uint32_t>(verdict.code));
  if (!verdict.chain.empty()) writer.put_string(NFTA_VERDICT_CHAIN, verdict.chain);
}

std::optional<Verdict> read_verdict(ByteView attributes) {
  Verdict verdict;
  bool has_code = false;
  AttributeReader reader(attributes);
  while (const auto attribute = reader.next()) {
    if (attribute->type == NFTA_VERDICT_CODE && attribute->payload.size() == 4) {
      verdict.code = static_cast<std::int32_t>(*attribute->be32());
      has_code = true;
    } else if (attribute->type == NFTA_VERDICT_CHAIN) {
      verdict.chain = attribute->string();
    } else {
      return std::nullopt;
    }
  }
  if (reader.malformed() || !has_code) return std::nullopt;
  return verdict;
}

void Expression::set(std::uint16_t attribute, std::uint64_t number) {
  for (Field& field : fields) {
    if (field.attribute == attribute) {
      field.value = number;
      return;
    }
  }
  fields.push_back(Field{attribute, number});
}

std::optional<std::uint64_t> Expression::number(std::uint16_t attribute) const {
  for (const Field& field : fields) {
    if (field.attribute != attribute) continue;
    if (const auto* number = std::get_if<std::uint64_t>(&field.value)) return *number;
  }
  return std::nullopt;
}

void write_expression(MessageWriter& writer, const Expression& expression) {
  write_nest(writer, NFTA_LIST_ELEM, expression);
}

netlink::Result<Expression> read_expression(ByteView attributes) {
  auto raw = read_raw(attributes);
  if (!raw) return netlink::decode_error("an expression is malformed");
  return expression_of(*std::move(raw));
}

netlink::Result<std::vector<Expression>> read_expressions(ByteView list) {
  std::vector<Expression> expressions;
  AttributeReader reader(list);
  while (const auto attribute = reader.next()) {
    auto expression = read_expression(attribute->payload);
    if (!expression.ok()) return expression.error();
    expressions.push_back(std::move(expression.value()));
  }
  if (reader.malformed()) return netlink::decode_error("a list of expressions is malformed");
  return expressions;
}

std::string expression_text(const Expression& expression) {
  if (expression.unknown) return "[unknown(" + name_text(expression.name) + ") " + hex_text(*expression.unknown) + "]";
  std::string text = "[" + name_text(expression.name);
  if (const ExpressionSchema* schema = expression_schema(expression.name)) {
    for (const FieldSchema& each : schema->fields) {
      if (each.volatile_value) continue;
      for (const Field& field : expression.fields) {
        if (field.attribute == each.attribute) text += field_text(expression, each, field);
      }
    }
  }
  return text + "]";
}

}  // namespace pointsman::nftables
