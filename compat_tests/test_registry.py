"""The schema registry with confluent-kafka's serializers: what one client writes, another reads by the schema."""

import json

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from pykafkad.testing import Broker

AVRO = {"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "int"}]}
WIDER = {**AVRO, "fields": [*AVRO["fields"], {"name": "city", "type": "string", "default": "Bern"}]}
JSON = {"title": "Order", "type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}


@pytest.fixture(scope="module")
def registered():
    with Broker(registry=True) as registered:
        yield registered


@pytest.fixture
def client(registered):
    return SchemaRegistryClient({"url": registered.registry_url})


def produce_and_consume(registered, topic, value):
    """What a consumer gets of one record."""
    producer = Producer(registered.client_config("confluent"))
    producer.produce(topic, value)
    assert producer.flush(30) == 0
    consumer = Consumer(registered.client_config("confluent", group=f"readers of {topic}"))
    consumer.subscribe([topic])
    try:
        message = consumer.poll(30)
        assert message is not None and message.error() is None
        return message.value()
    finally:
        consumer.close()


def test_avro_from_producer_to_consumer(registered, client):
    """The consumer reads by a later version, with the default of what the producer did not know."""
    context = SerializationContext("avro-orders", MessageField.VALUE)
    written = AvroSerializer(client, json.dumps(AVRO))({"amount": 5}, context)
    received = produce_and_consume(registered, "avro-orders", written)
    assert AvroDeserializer(client, json.dumps(WIDER))(received, context) == {"amount": 5, "city": "Bern"}
    assert client.get_latest_version("avro-orders-value").version == 1


def test_json_schema_from_producer_to_consumer(registered, client):
    context = SerializationContext("json-orders", MessageField.VALUE)
    written = JSONSerializer(json.dumps(JSON), client)({"amount": 5}, context)
    received = produce_and_consume(registered, "json-orders", written)
    assert JSONDeserializer(json.dumps(JSON), schema_registry_client=client)(received, context) == {"amount": 5}


def test_the_client_registers_compares_and_deletes(client):
    first = client.register_schema("s", Schema(json.dumps(AVRO), "AVRO"))
    assert client.register_schema("s", Schema(json.dumps(AVRO), "AVRO")) == first
    assert client.test_compatibility("s", Schema(json.dumps(WIDER), "AVRO"))
    narrower = json.dumps({**AVRO, "fields": [{"name": "amount", "type": "string"}]})
    assert not client.test_compatibility("s", Schema(narrower, "AVRO"))
    with pytest.raises(SchemaRegistryError) as told:
        client.register_schema("s", Schema(narrower, "AVRO"))
    assert (told.value.http_status_code, told.value.error_code) == (409, 40901)
    client.set_compatibility("s", "NONE")
    assert client.get_compatibility("s") == "NONE"
    second = client.register_schema("s", Schema(narrower, "AVRO"))
    assert client.get_versions("s") == [1, 2]
    assert json.loads(client.get_schema(second).schema_str) == json.loads(narrower)
    assert client.lookup_schema("s", Schema(narrower, "AVRO")).version == 2
    assert client.delete_version("s", 1) == 1
    assert client.delete_subject("s") == [2]
    assert client.delete_subject("s", permanent=True) == [1, 2]
    assert "s" not in client.get_subjects()


def order_type():
    """The class of a message, made without protoc: as it would be in a module that protoc has written."""
    file = descriptor_pb2.FileDescriptorProto(name="shop/order.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type.add(name="Unused")
    order = file.message_type.add(name="Order").nested_type.add(name="Line")
    field = descriptor_pb2.FieldDescriptorProto
    order.field.add(name="amount", number=1, type=field.TYPE_INT32, label=field.LABEL_OPTIONAL)
    timestamp = ".google.protobuf.Timestamp"
    order.field.add(name="at", number=2, type=field.TYPE_MESSAGE, label=field.LABEL_OPTIONAL, type_name=timestamp)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order.Line"))


def test_protobuf_from_producer_to_consumer(registered, client):
    """A message inside another one, which is not the first, with the time of a file that Protobuf brings."""
    line = order_type()
    context = SerializationContext("protobuf-orders", MessageField.VALUE)
    options = {"use.deprecated.format": False}
    message = line(amount=5)
    message.at.FromSeconds(1_700_000_000)
    written = ProtobufSerializer(line, client, options)(message, context)
    received = produce_and_consume(registered, "protobuf-orders", written)
    assert ProtobufDeserializer(line, options, client)(received, context) == message
    found = client.get_latest_version("protobuf-orders-value")
    assert found.schema.schema_type == "PROTOBUF"
    assert "    .google.protobuf.Timestamp at = 2;\n" in found.schema.schema_str
    # The producer registers once: what it has is known again.
    ProtobufSerializer(line, SchemaRegistryClient({"url": registered.registry_url}), options)(message, context)
    assert client.get_versions("protobuf-orders-value") == [1]
